//! Shells beside the bare tools that they are made of, in one run: only the ratios mean anything.
//!
//! The floor for commands is a bash in a `tmux -C` client whose output is read directly; the floor for
//! output is `pipe-pane` to `cat`. Ours does the same and also delivers exit code, directory and an
//! exact, recoverable log. A terminal without tmux (`script` to a file) is shown for comparison.
//!
//! On a busy machine run it with a high priority, which the programs it starts inherit.

#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it prints, and a failure ends it")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use sandbox::shell::{Config, Progress, Session, SessionSpec, Shells, Wait};

const ROUNDS: usize = 200;
const STARTS: usize = 15;
const FLOODS: usize = 3;

fn main() {
    let directory = tempfile::Builder::new().prefix("sb").tempdir_in("/tmp").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(directory.path()));
}

async fn measure(directory: &Path) {
    let shells = Shells::open(config(directory, "root")).await.unwrap();
    let session = shells.create(spec(directory)).await.unwrap();
    let mut bare = Bare::start(directory, "bare");

    // The ending is what comes with the output, but not with the echo of the command.
    for (name, command, ending, rounds) in [
        ("echo hi", "echo hi", r"\015hi\015\012", ROUNDS),
        ("seq 1 10000", "seq 1 10000", r"\01210000\015\012", ROUNDS / 4),
    ] {
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        // Alternating, so that both see the same machine.
        for _ in 0..rounds {
            floor.push(bare.round_trip(command, ending));
            ours.push(run(&session, command).await);
        }
        report(name, &mut floor, &mut ours);
    }

    let (mut floor, mut cold, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..STARTS {
        let begun = Instant::now();
        let started = Bare::start(directory, &format!("start{round}"));
        floor.push(begun.elapsed());
        drop(started);
        let begun = Instant::now();
        let fresh = Shells::open(config(directory, &format!("root{round}"))).await.unwrap();
        fresh.create(spec(directory)).await.unwrap();
        cold.push(begun.elapsed());
        fresh.shut_down().await.unwrap();
        let begun = Instant::now();
        let another = shells.create(spec(directory)).await.unwrap();
        warm.push(begun.elapsed());
        another.close().await.unwrap();
    }
    report("start, with the server", &mut floor.clone(), &mut cold);
    report("start, server running", &mut floor, &mut warm);

    let big = directory.join("big");
    let lines = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".to_owned() + "+\n";
    fs::write(&big, lines.repeat(500_000)).unwrap();
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for round in 0..FLOODS {
        floor.push(bare.flood(&big, &directory.join(format!("piped{round}"))));
        ours.push(run(&session, &format!("cat {}", big.display())).await);
    }
    report("cat of 32 MB", &mut floor, &mut ours);
    let mut raw: Vec<_> = (0..FLOODS).map(|_| raw_terminal(&big, directory)).collect();
    println!("cat of 32 MB, terminal without tmux: {:.2?}", median(&mut raw));
    println!(
        "memory: owner {} KiB, tmux server {} KiB with {} session(s)",
        resident_kib(std::process::id()),
        resident_kib(shells.server().pid),
        shells.list().len()
    );
    drop(bare);
    shells.shut_down().await.unwrap();
}

fn config(directory: &Path, root: &str) -> Config {
    Config::new(directory.join(root), env!("CARGO_BIN_EXE_sandbox"))
}

fn spec(directory: &Path) -> SessionSpec {
    let mut spec = SessionSpec::in_directory(directory);
    // No start-up files: they would be measured along.
    spec.environment.push(("HOME".into(), directory.into()));
    spec
}

async fn run(session: &Session, command: &str) -> Duration {
    let begun = Instant::now();
    let job = session.run(command).await.unwrap();
    match job.wait(Wait::forever()).await.unwrap() {
        Progress::Finished(result) => assert_eq!(result.exit_code, 0),
        Progress::Running(running) => panic!("{running:?}"),
    }
    begun.elapsed()
}

fn report(name: &str, floor: &mut [Duration], ours: &mut [Duration]) {
    let (floor, ours) = (median(floor), median(ours));
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("{name}: bare {floor:.2?}, ours {ours:.2?}, ratio {ratio:.2}");
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The same output through a bare pseudo-terminal into a file.
fn raw_terminal(big: &Path, directory: &Path) -> Duration {
    let begun = Instant::now();
    let mut script = Command::new("script");
    script.args(["-q", "-c"]).arg(format!("cat {}", big.display())).arg(directory.join("raw"));
    script.stdin(Stdio::null()).stdout(Stdio::null());
    script.status().unwrap();
    begun.elapsed()
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A bash in a tmux of its own, used through a control client with its output on.
struct Bare {
    client: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Bare {
    /// Returns at the first prompt.
    fn start(directory: &Path, socket: &str) -> Self {
        let mut client = Command::new("tmux")
            .arg("-S")
            .arg(directory.join(socket))
            .args(["-f", "/dev/null", "-C", "new-session", "-x", "160", "-y", "48"])
            .args(["bash", "--norc", "-i"])
            .env_remove("TMUX")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = client.stdin.take().unwrap();
        let output = BufReader::new(client.stdout.take().unwrap());
        let mut bare = Self { client, input, output };
        bare.until(&["$ ", "# "]);
        bare
    }

    fn round_trip(&mut self, command: &str, ending: &str) -> Duration {
        let begun = Instant::now();
        writeln!(self.input, "send-keys -l '{command}'\nsend-keys Enter").unwrap();
        self.until(&[ending]);
        begun.elapsed()
    }

    /// The time until everything is in the file of `pipe-pane`.
    fn flood(&mut self, big: &Path, piped: &Path) -> Duration {
        writeln!(self.input, "refresh-client -f no-output").unwrap();
        writeln!(self.input, "pipe-pane -O 'exec cat >{}'", piped.display()).unwrap();
        let lines = fs::read_to_string(big).unwrap().lines().count() as u64;
        let wanted = fs::metadata(big).unwrap().len() + lines;
        let begun = Instant::now();
        writeln!(self.input, "send-keys -l 'cat {}'\nsend-keys Enter", big.display()).unwrap();
        while fs::metadata(piped).map_or(0, |file| file.len()) < wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
        let elapsed = begun.elapsed();
        writeln!(self.input, "pipe-pane").unwrap();
        elapsed
    }

    /// Reads until the output of the pane contains one of these texts, control characters in octal.
    fn until(&mut self, wanted: &[&str]) {
        let mut seen = String::new();
        loop {
            let mut line = Vec::new();
            assert!(self.output.read_until(b'\n', &mut line).unwrap() > 0, "tmux has ended");
            let line = String::from_utf8_lossy(&line);
            if let Some(text) = line.strip_prefix("%output ") {
                seen.push_str(
                    text.split_once(' ').map_or("", |(_, text)| text).trim_end_matches('\n'),
                );
                if wanted.iter().any(|wanted| seen.contains(wanted)) {
                    return;
                }
            }
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = writeln!(self.input, "kill-server");
        let mut rest = Vec::new();
        while self.output.read_until(b'\n', &mut rest).is_ok_and(|read| read > 0) {
            rest.clear();
        }
        let _ = self.client.wait();
    }
}
