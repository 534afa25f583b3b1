//! A model of the shells in the daemon's sandbox. It knows the expected state and output of each shell, and
//! checks that all logged output stays readable, byte for byte, after any fault.

use std::collections::BTreeMap;

use harness::{Socket, piece, process_exists, wait_until};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use crate::sandbox_calls::{info, list, read, request, wait_for_end, wait_params, word};

const NAMES: [&str; 3] = ["main", "build", "logs"];

/// Limit in milliseconds for the first wait for a command, which a fault may block.
const SHORT_WAIT_MS: u64 = 200;

/// A shell whose log is longer is closed at the next rest.
const LOG_BYTES: usize = 512 << 10;

/// The part of a command's output that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// As many bytes as the result reports.
    Counted,
    /// All output that was printed while no recorder ran.
    Unknown,
}

/// All shells that must exist, by name.
#[derive(Default)]
pub struct Shells {
    known: BTreeMap<&'static str, Shell>,
    pub commands: usize,
}

struct Shell {
    pid: u64,
    /// Value of the shell variable `kept`. It shows that the shell is still the same process.
    kept: String,
    /// Content of the log at the latest check.
    log: Vec<u8>,
    /// Number of the latest command.
    latest: Value,
    unfinished: Option<Unfinished>,
}

/// A command whose result has not been checked yet.
struct Unfinished {
    expected: Vec<u8>,
    /// Value of the variable `kept` after the command.
    kept: String,
    loss: Loss,
    waits_for_input: bool,
    /// Whether `shell/run` succeeded. If not, the command may never have run.
    accepted: bool,
}

impl Shells {
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// A random shell, if there is one.
    pub fn choose(&self, random: &mut StdRng) -> Option<&'static str> {
        self.known.keys().copied().collect::<Vec<_>>().choose(random).copied()
    }

    pub fn pid(&self, name: &str) -> u32 {
        self.known[name].pid as u32
    }

    /// Runs a command in a random shell, which starts if it does not exist, and checks the output.
    pub fn run(&mut self, socket: &mut Socket, random: &mut StdRng) {
        let name = NAMES.choose(random).unwrap();
        if self.known.get(name).is_some_and(Shell::waits_for_input) {
            let params = json!({"shell": name, "command": "true"});
            let error = request(socket, "shell/run", &params).unwrap_err();
            return assert_eq!(error["data"]["reason"], "busy", "{name}: {error}");
        }
        self.finish(socket, name);
        self.begin(socket, name, random, None, Loss::Nothing);
        self.finish(socket, name);
    }

    /// Runs a command that prints, waits for a line of input, and prints again. The client disconnects while
    /// the command waits.
    pub fn leave(&mut self, mut socket: Socket, random: &mut StdRng) {
        let name = NAMES.choose(random).unwrap();
        if self.known.get(name).is_none_or(|shell| shell.unfinished.is_none()) {
            let word = word(random);
            self.begin(&mut socket, name, random, Some(word), Loss::Nothing);
        }
    }

    /// Runs a command while a fault is active. [`Shells::finish_all`] checks its result.
    pub fn try_to_run(&mut self, socket: &mut Socket, random: &mut StdRng, loss: Loss) {
        if let Some(name) = self.choose(random) {
            self.try_to_run_in(socket, name, random, loss);
        }
    }

    pub fn try_to_run_in(
        &mut self,
        socket: &mut Socket,
        name: &'static str,
        random: &mut StdRng,
        loss: Loss,
    ) {
        if self.known[name].unfinished.is_none() {
            self.begin(socket, name, random, None, loss);
        }
    }

    /// Streams a flood of output to a client that does not read it until the command has ended. Each piece
    /// must be in the log at its offset.
    pub fn stream(&mut self, mut follower: Socket, socket: &mut Socket, random: &mut StdRng) {
        let Some(name) = self.choose(random) else { return };
        if self.known[name].unfinished.is_some() {
            return;
        }
        let shell = self.known.get_mut(name).unwrap();
        let params = json!({"shell": name, "command": "seq 1 20000", "stream": true});
        let id = follower.send_request("shell/run", params);
        wait_until("the command to have begun", || {
            let now = request(socket, "shell/wait", &json!({"shell": name, "limitMs": 0}));
            now.is_ok_and(|now| now["command"] != shell.latest)
        });
        let ended = wait_for_end(socket, name);
        shell.latest = ended["command"].clone();
        let log = read(socket, name, 0, u64::MAX);
        loop {
            let message = follower.receive();
            if message["id"] == id {
                assert_eq!(message["result"]["output"]["end"], ended["output"]["end"]);
                break;
            }
            let (at, piece) =
                (message["params"]["value"]["offset"].as_u64().unwrap(), piece(&message));
            assert!(log[at as usize..].starts_with(&piece), "a piece that is not in the log");
        }
        self.commands += 1;
    }

    /// Closes shells with long logs, so that a long run does not fill the disk.
    pub fn close_long_logs(&mut self, socket: &mut Socket) {
        self.known.retain(|name, shell| {
            let stays = shell.log.len() <= LOG_BYTES;
            if !stays {
                socket.call("shell/close", json!({"shell": name}));
                assert!(
                    !process_exists(shell.pid as u32),
                    "{name} is closed, but its process is alive"
                );
            }
            stays
        });
    }

    fn begin(
        &mut self,
        socket: &mut Socket,
        name: &'static str,
        random: &mut StdRng,
        prompt: Option<String>,
        loss: Loss,
    ) {
        let (before, after) = (self.kept(name), word(random));
        let lines = random.random_range(0..2000);
        let mut command = format!("echo \"${{kept-none}}\"; kept={after}; seq 1 {lines}");
        let mut expected = format!("{before}\r\n");
        expected.extend((1..=lines).map(|line| format!("{line}\r\n")));
        if let Some(prompt) = &prompt {
            command.push_str(&format!("; printf {prompt}; read -rs answer; echo \"$answer\""));
            expected.push_str(&format!("{prompt}line\r\n"));
        }
        let params = json!({"shell": name, "create": true, "command": command, "limitMs": SHORT_WAIT_MS,
            "returnOnInput": prompt.is_some()});
        let answer = request(socket, "shell/run", &params);
        assert!(answer.is_ok() || loss != Loss::Nothing, "{name}: {answer:?}");
        self.known.entry(name).or_insert_with(|| Shell::new(socket, name));
        self.commands += 1;
        let unfinished = Unfinished {
            expected: expected.into_bytes(),
            kept: after,
            loss,
            waits_for_input: prompt.is_some(),
            accepted: answer.is_ok(),
        };
        self.known.get_mut(name).unwrap().unfinished = Some(unfinished);
    }

    /// Waits for the end of all commands, and checks their output.
    pub fn finish_all(&mut self, socket: &mut Socket) {
        for name in NAMES {
            self.finish(socket, name);
        }
    }

    fn finish(&mut self, socket: &mut Socket, name: &str) {
        let Some(shell) = self.known.get_mut(name) else { return };
        let Some(unfinished) = shell.unfinished.take() else { return };
        if unfinished.waits_for_input {
            socket.type_secretly(name, "line");
        }
        let ended = match request(socket, "shell/wait", &wait_params(name)) {
            Ok(ended) => ended,
            // The command did not run, and it would have been the first of its shell.
            Err(error) if !unfinished.accepted && error["data"]["reason"] == "noSuchCommand" => {
                return;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        if ended["command"] == shell.latest {
            assert!(
                !unfinished.accepted,
                "{name}: a command that was accepted has not run: {ended}"
            );
            return;
        }
        shell.latest = ended["command"].clone();
        shell.kept.clone_from(&unfinished.kept);
        assert_eq!(ended["state"], "finished", "the command in {name} does not end: {ended}");
        let output = &ended["output"];
        let (start, end) = (output["start"].as_u64().unwrap(), output["end"].as_u64().unwrap());
        let kept = read(socket, name, start, end);
        let lost = output["lost"].as_u64().unwrap_or_default();
        let Unfinished { expected, loss, .. } = unfinished;
        let show =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(300).collect::<String>();
        let complete = kept == expected && ended["exitCode"] == 0;
        let is_right = match loss {
            Loss::Unknown => true,
            Loss::Counted if lost > 0 => {
                kept.len() as u64 + lost == expected.len() as u64 && is_part(&kept, &expected)
            }
            Loss::Counted | Loss::Nothing => complete && lost == 0,
        };
        assert!(
            is_right,
            "{name} ({loss:?}, {lost} lost): {} bytes instead of {}: {:?} instead of {:?}: {ended}",
            kept.len(),
            expected.len(),
            show(&kept),
            show(&expected)
        );
    }

    /// The recorder of a shell was killed: a running command may lose some of its output.
    pub fn expect_loss(&mut self, name: &str) {
        if let Some(unfinished) =
            self.known.get_mut(name).and_then(|shell| shell.unfinished.as_mut())
        {
            unfinished.loss = Loss::Unknown;
        }
    }

    /// A shell was killed: waits until a new one has replaced it.
    pub fn expect_replacement(&mut self, socket: &mut Socket, name: &str) {
        let shell = self.known.get_mut(name).unwrap();
        wait_until("a new shell at its prompt", || {
            let now = info(socket, name);
            now["pid"] != shell.pid && now["state"] == "idle"
        });
        shell.pid = info(socket, name)["pid"].as_u64().unwrap();
        shell.kept = "none".to_owned();
        let waited = shell.waits_for_input();
        if shell.unfinished.take().is_some() {
            let ended = wait_for_end(socket, name);
            let ways: &[_] = if waited { &["shellExited"] } else { &["shellExited", "atPrompt"] };
            assert!(ways.iter().any(|way| ended["ended"] == *way), "{ended}");
            shell.latest = ended["command"].clone();
        }
    }

    /// The tmux server was killed: waits for the end of all shells.
    pub fn expect_none(&mut self) {
        for shell in std::mem::take(&mut self.known).into_values() {
            let pid = shell.pid as u32;
            wait_until(&format!("the end of shell {pid}"), || !process_exists(pid));
        }
    }

    /// A state file of a shell was truncated. The shell may be lost, but then its process must end.
    pub fn expect_shell_or_its_end(&mut self, socket: &mut Socket, name: &str) {
        let shell = &self.known[name];
        let there = list(socket).into_iter().find(|there| there["shell"] == name);
        if there.is_none_or(|there| there["pid"] != shell.pid) {
            let pid = shell.pid as u32;
            wait_until(&format!("the end of shell {pid}"), || !process_exists(pid));
            self.known.remove(name);
        }
    }

    /// Checks that every shell exists, is the same process, and has lost nothing of its log.
    pub fn check(&mut self, socket: &mut Socket) {
        let there = list(socket);
        assert_eq!(there.len(), self.known.len(), "{there:?}");
        for (name, shell) in &mut self.known {
            let now = there.iter().find(|there| there["shell"] == *name);
            let now = now.unwrap_or_else(|| panic!("shell {name} is lost: {there:?}"));
            assert_eq!(now["pid"], shell.pid, "{name} is another process: {now}");
            let log = read(socket, name, 0, u64::MAX);
            assert!(log.starts_with(&shell.log), "the log of {name} has changed");
            shell.log = log;
        }
    }

    fn kept(&self, name: &str) -> String {
        self.known.get(name).map_or("none", |shell| &shell.kept).to_owned()
    }
}

impl Shell {
    fn new(socket: &mut Socket, name: &str) -> Self {
        Self {
            pid: info(socket, name)["pid"].as_u64().unwrap(),
            kept: "none".to_owned(),
            log: Vec::new(),
            latest: Value::Null,
            unfinished: None,
        }
    }

    fn waits_for_input(&self) -> bool {
        self.unfinished.as_ref().is_some_and(|unfinished| unfinished.waits_for_input)
    }
}

/// Whether `part` is `whole` with some bytes left out.
fn is_part(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}
