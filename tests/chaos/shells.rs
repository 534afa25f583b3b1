//! The shells of the daemon's sandbox, and what is known of them: what a shell has printed and logged
//! must be found again, byte for byte, whatever happened since.

use std::collections::BTreeMap;

use harness::{Socket, piece, process_exists, wait_until};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use crate::asking::{info, list, read, request, wait_for_end, waiting, word};

const NAMES: [&str; 3] = ["main", "build", "logs"];

/// Milliseconds after which a wait for a command that may be held up returns.
const A_MOMENT: u64 = 200;

/// What a shell may have printed before it is closed.
const LOG_BYTES: usize = 512 << 10;

/// What output of a command may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// What the answer says.
    Counted,
    /// Whatever was printed while nobody recorded.
    Unknown,
}

/// All shells that should be there, by name.
#[derive(Default)]
pub struct Shells {
    known: BTreeMap<&'static str, Shell>,
    pub commands: usize,
}

struct Shell {
    pid: u64,
    /// A variable that only this very process has.
    kept: String,
    /// What its log holds.
    log: Vec<u8>,
    latest: Value,
    unfinished: Option<Unfinished>,
}

/// A command whose result is still to be checked.
struct Unfinished {
    expected: Vec<u8>,
    /// The variable afterwards.
    kept: String,
    loss: Loss,
    waits_for_input: bool,
    /// Whether it was accepted; otherwise it may never have run.
    accepted: bool,
}

impl Shells {
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// One of those that are there.
    pub fn choose(&self, random: &mut StdRng) -> Option<&'static str> {
        self.known.keys().copied().collect::<Vec<_>>().choose(random).copied()
    }

    pub fn pid(&self, name: &str) -> u32 {
        self.known[name].pid as u32
    }

    /// Runs a command in one of the shells, which starts if need be, and checks what it printed.
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

    /// Runs a command that prints, waits for a line, and prints again; whoever asked leaves.
    pub fn leave(&mut self, mut socket: Socket, random: &mut StdRng) {
        let name = NAMES.choose(random).unwrap();
        if self.known.get(name).is_none_or(|shell| shell.unfinished.is_none()) {
            let word = word(random);
            self.begin(&mut socket, name, random, Some(word), Loss::Nothing);
        }
    }

    /// Runs a command while something is wrong. What became of it is checked by [`Shells::finish_all`].
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

    /// Follows a flood of output without reading it at first: what was left out is in the log.
    pub fn stream(&mut self, mut follower: Socket, socket: &mut Socket, random: &mut StdRng) {
        let Some(name) = self.choose(random) else { return };
        if self.known[name].unfinished.is_some() {
            return;
        }
        let shell = self.known.get_mut(name).unwrap();
        let params = json!({"shell": name, "command": "seq 1 20000", "stream": true});
        let id = follower.ask("shell/run", params);
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

    /// Closes shells that have printed much, as one does, so that a long run does not fill the disk.
    pub fn close_the_longest(&mut self, socket: &mut Socket) {
        self.known.retain(|name, shell| {
            let stays = shell.log.len() <= LOG_BYTES;
            if !stays {
                socket.call("shell/close", json!({"shell": name}));
                assert!(!process_exists(shell.pid as u32), "{name} is closed and lives");
            }
            stays
        });
    }

    fn begin(
        &mut self,
        socket: &mut Socket,
        name: &'static str,
        random: &mut StdRng,
        question: Option<String>,
        loss: Loss,
    ) {
        let (before, after) = (self.kept(name), word(random));
        let lines = random.random_range(0..2000);
        let mut command = format!("echo \"${{kept-none}}\"; kept={after}; seq 1 {lines}");
        let mut expected = format!("{before}\r\n");
        expected.extend((1..=lines).map(|line| format!("{line}\r\n")));
        if let Some(question) = &question {
            command.push_str(&format!("; printf {question}; read -rs answer; echo \"$answer\""));
            expected.push_str(&format!("{question}line\r\n"));
        }
        let params = json!({"shell": name, "create": true, "command": command, "limitMs": A_MOMENT,
            "returnOnInput": question.is_some()});
        let answer = request(socket, "shell/run", &params);
        assert!(answer.is_ok() || loss != Loss::Nothing, "{name}: {answer:?}");
        self.known.entry(name).or_insert_with(|| Shell::new(socket, name));
        self.commands += 1;
        let unfinished = Unfinished {
            expected: expected.into_bytes(),
            kept: after,
            loss,
            waits_for_input: question.is_some(),
            accepted: answer.is_ok(),
        };
        self.known.get_mut(name).unwrap().unfinished = Some(unfinished);
    }

    /// Lets all commands come to their end, and checks their output.
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
        let ended = match request(socket, "shell/wait", &waiting(name)) {
            Ok(ended) => ended,
            // It would have been the first one.
            Err(error) if !unfinished.accepted && error["data"]["reason"] == "noSuchCommand" => {
                return;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        if ended["command"] == shell.latest {
            assert!(
                !unfinished.accepted,
                "{name}: a command that was accepted has vanished: {ended}"
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

    /// A shell whose recorder was killed while a command was running may have lost some of its output.
    pub fn expect_loss(&mut self, name: &str) {
        if let Some(unfinished) =
            self.known.get_mut(name).and_then(|shell| shell.unfinished.as_mut())
        {
            unfinished.loss = Loss::Unknown;
        }
    }

    /// A shell was killed: another must take its place.
    pub fn expect_another(&mut self, socket: &mut Socket, name: &str) {
        let shell = self.known.get_mut(name).unwrap();
        wait_until("another shell at its prompt", || {
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

    /// The shells went down with their tmux server: their processes must end.
    pub fn expect_none(&mut self) {
        for shell in std::mem::take(&mut self.known).into_values() {
            let pid = shell.pid as u32;
            wait_until(&format!("the end of shell {pid}"), || !process_exists(pid));
        }
    }

    /// One of the files about a shell was spoilt. It may be lost, but then nothing of it may be left.
    pub fn expect_at_least_no_trace(&mut self, socket: &mut Socket, name: &str) {
        let shell = &self.known[name];
        let there = list(socket).into_iter().find(|there| there["shell"] == name);
        if there.is_none_or(|there| there["pid"] != shell.pid) {
            let pid = shell.pid as u32;
            wait_until(&format!("the end of shell {pid}"), || !process_exists(pid));
            self.known.remove(name);
        }
    }

    /// Every shell must be there, be the same process, and have everything in its log that it ever had.
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

/// Whether the part is the whole with some of it left out.
fn is_part(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}
