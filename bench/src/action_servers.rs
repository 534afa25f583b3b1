//! Compares the action server of the OpenHands edge with OpenHands' own: both get the same requests over
//! HTTP, in turns.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Run;
use crate::bare::{BarePty, Terminal as _};
use crate::process::{Process, built};
use crate::report::{Figure, Report, Target, median_of};
use crate::series::Series;

const OURS: &str = "Run Bridge action server";
const THEIRS: &str = "OpenHands action server";
const BARE: &str = "bash in a bare terminal";
const SLEEP: &str = "sleep 0.05; echo hi";
const TIMEOUT: Duration = Duration::from_secs(120);
/// Requests of each kind in each round. It is small, because OpenHands' server takes more than half a second
/// for the quickest command.
const COUNT: usize = 5;

/// Name of the measurement, the command, and the last line that the answer must have.
const RUNS: [(&str, &str, &str); 3] =
    [("echo hi", "echo hi", "hi"), (SLEEP, SLEEP, "hi"), ("seq 1 10000", "seq 1 10000", "10000")];

pub fn measure(run: &mut Run) -> Result<()> {
    let Run { report, rounds, peers, .. } = run;
    let program = built("openhands-edge", "openhands-edge")?;
    let mut servers = vec![ActionServer::start(OURS, |port, work, state| {
        let mut command = Command::new(&program);
        command.args(["serve", &port.to_string()]).arg("--state").arg(state);
        command.arg("--working-dir").arg(work);
        command
    })?];
    match &peers.openhands() {
        Ok(python) => servers.push(ActionServer::start(THEIRS, |port, work, _| {
            let mut command = Command::new(python);
            command.args(["-m", "openhands.runtime.action_execution_server", &port.to_string()]);
            command.args(["--username", "root", "--user-id", "0", "--no-enable-browser"]);
            command.arg("--working-dir").arg(work);
            command
        })?),
        Err(reason) => report.note(format!("OpenHands is not compared: {reason}")),
    }
    let mut bare = BarePty::start()?;
    let mut series = Series::default();
    for round in 0..*rounds {
        eprintln!("action servers: round {} of {rounds}", round + 1);
        // The first request is not measured: OpenHands' server starts the things that it needs only then.
        for server in &servers {
            server.run("echo hi", "hi")?;
        }
        for (name, command, wanted) in RUNS {
            measure_each(&mut series, name, &servers, |server| server.run(command, wanted))?;
        }
        let slept = (0..COUNT).map(|_| Ok(bare.round_trip(SLEEP, b"\rhi\r\n")?.0));
        series.add(SLEEP, BARE, median_of(slept.collect::<Result<_>>()?) * 1e3);
        measure_each(&mut series, "write of 1 KiB", &servers, ActionServer::write)?;
        measure_each(&mut series, "read of 1 KiB", &servers, ActionServer::read)?;
        measure_each(&mut series, "edit of 1 KiB", &servers, ActionServer::edit)?;
    }
    summarise(report, &series, &servers)
}

/// Measures `COUNT` requests in a row for each server. All servers have their turn in every round, so that all
/// see the same load of the machine and warm caches.
fn measure_each(
    series: &mut Series,
    what: &str,
    servers: &[ActionServer],
    work: impl Fn(&ActionServer) -> Result<()>,
) -> Result<()> {
    for server in servers {
        let mut times = Vec::new();
        for _ in 0..COUNT {
            let begun = Instant::now();
            work(server).with_context(|| format!("{}: {what}", server.name))?;
            times.push(begun.elapsed());
        }
        series.add(what, server.name, median_of(times) * 1e3);
    }
    Ok(())
}

fn summarise(report: &mut Report, series: &Series, servers: &[ActionServer]) -> Result<()> {
    let files = ["write of 1 KiB", "read of 1 KiB", "edit of 1 KiB"];
    for what in RUNS.map(|(name, ..)| name).into_iter().chain(files) {
        let group = format!("Action server, `{what}`: p50 in ms, and how many times faster");
        for server in servers {
            let target = (what == "echo hi" && server.name == OURS && servers.len() > 1)
                .then(|| Target::at_least(100.0, 100.0));
            let figure = Figure::new(server.name, series.get(what, server.name));
            let ratios = series.ratios(what, THEIRS, server.name);
            report.add(&group, figure.with_ratios(ratios, target));
        }
    }
    // The bare bash shows how much of this bash itself needs to start a program and to notice its end.
    let group = format!("Action server, `{SLEEP}`: ms beyond the sleep");
    for arm in [BARE, OURS] {
        let beyond = series.get(SLEEP, arm).map(|times| times.iter().map(|time| time - 50.0));
        let figure = Figure::new(arm, beyond.map(Iterator::collect).as_ref());
        let figure = match arm {
            OURS => figure.with_target(Target::at_most(3.0, 3.0)),
            _ => figure,
        };
        report.add(&group, figure);
    }
    for server in servers {
        let start = Figure::new(server.name, Some(&vec![server.start.as_secs_f64() * 1e3]));
        let start = match server.name {
            OURS => start.with_target(Target::at_most(50.0, 50.0)),
            _ => start,
        };
        report.add("Action server, start to /alive: ms", start);
        let memory = server.process.resident_kib()? / 1024.0;
        let memory = Figure::new(server.name, Some(&vec![memory]));
        report.add("Action server, memory (resident, MiB)", memory);
    }
    Ok(())
}

/// The key of both servers.
const KEY: &str = "a key for the benchmark";

struct ActionServer {
    name: &'static str,
    process: Process,
    url: String,
    client: ureq::Agent,
    start: Duration,
    file: PathBuf,
    _home: TempDir,
}

impl ActionServer {
    fn start(name: &'static str, command: impl Fn(u16, &Path, &Path) -> Command) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let work = home.path().join("work");
        std::fs::create_dir(&work)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = command(port, &work, &home.path().join("state"));
        command.current_dir(home.path()).env("HOME", home.path()).env("TMUX_TMPDIR", home.path());
        command.env("NO_CHANGE_TIMEOUT_SECONDS", "30").env("SESSION_API_KEY", KEY);
        command.stderr(std::process::Stdio::null());
        let begun = Instant::now();
        let process = Process::start(&mut command)?;
        let client = ureq::Agent::new_with_defaults();
        let url = format!("http://127.0.0.1:{port}");
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
            ensure!(begun.elapsed() < TIMEOUT, "{name} does not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        client.get(format!("{url}/alive")).call()?;
        let start = begun.elapsed();
        Ok(Self { name, process, url, client, start, file: work.join("file"), _home: home })
    }

    fn action(&self, action: &str, args: Value) -> Result<Value> {
        let body = json!({"action": {"action": action, "args": args, "timeout": 60}}).to_string();
        let request = self.client.post(format!("{}/execute_action", self.url));
        let request = request.header("X-Session-API-Key", KEY);
        let mut answer = request.header("Content-Type", "application/json").send(body)?;
        Ok(serde_json::from_str(&answer.body_mut().read_to_string()?)?)
    }

    fn run(&self, command: &str, wanted: &str) -> Result<()> {
        let answer = self.action("run", json!({"command": command}))?;
        let content = answer["content"].as_str().unwrap_or_default();
        if content.lines().last() != Some(wanted) {
            bail!("answered {answer}");
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let content = "first\n".to_owned() + &"0123456789abcde\n".repeat(63);
        let answer = self.action("write", json!({"path": self.file, "content": content}))?;
        ensure!(answer["observation"] == "write", "answered {answer}");
        Ok(())
    }

    fn read(&self) -> Result<()> {
        let answer = self.action("read", json!({"path": self.file}))?;
        let content = answer["content"].as_str().unwrap_or_default();
        ensure!(content.starts_with("first\n"), "answered {answer}");
        Ok(())
    }

    /// Replaces a text and replaces it back, so that the edit can be repeated.
    fn edit(&self) -> Result<()> {
        for (old, new) in [("first", "other"), ("other", "first")] {
            let args = json!({
                "path": self.file, "command": "str_replace", "old_str": old, "new_str": new,
                "impl_source": "oh_aci",
            });
            let answer = self.action("edit", args)?;
            ensure!(answer["observation"] == "edit", "answered {answer}");
        }
        Ok(())
    }
}

impl Drop for ActionServer {
    /// Sends SIGTERM, so that the server also ends its shells.
    fn drop(&mut self) {
        self.process.terminate();
    }
}
