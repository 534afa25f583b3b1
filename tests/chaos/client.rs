use std::collections::HashMap;
use std::net::Shutdown;

use harness::{Daemon, Socket};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::{Value, json};

/// Milliseconds after which the daemon gives up on what a host does not answer.
const TIMEOUT_MS: u64 = 500;

/// What the bridge may say instead of a host's answer.
const KINDS: [&str; 8] = [
    "HostUnavailable",
    "HostGone",
    "Timeout",
    "Overloaded",
    "MethodNotFound",
    "AmbiguousRuntime",
    "RequestCancelled",
    "ShuttingDown",
];

/// A connection and its open questions, by id, with the word that the answer must hold.
pub struct Client {
    socket: Socket,
    open: HashMap<u64, String>,
    pub answered: usize,
    pub failed: usize,
}

impl Client {
    pub fn connect(daemon: &Daemon) -> Self {
        Self { socket: daemon.client(), open: HashMap::new(), answered: 0, failed: 0 }
    }

    /// Asks a few things. False if the connection is gone.
    pub fn ask(&mut self, random: &mut StdRng) -> bool {
        (0..random.random_range(1..20)).all(|_| match random.random_range(0..10) {
            0 => self.ask_one(random, "vscode/getChatHistory", 0), // The hosts never answer this one.
            1 => self.ask_one(random, "no/such/method", 0),
            2 | 3 => self.ask_one(random, "vscode/chat", 100_000),
            _ => self.ask_one(random, "vscode/chat", 10),
        })
    }

    /// Asks one thing that fits into the buffers of the kernel, even if nobody reads.
    pub fn ask_little(&mut self, random: &mut StdRng) -> bool {
        self.ask_one(random, "vscode/chat", 10)
    }

    /// Asks one thing of several megabytes.
    pub fn ask_much(&mut self, random: &mut StdRng) -> bool {
        self.ask_one(random, "vscode/chat", 4 << 20)
    }

    fn ask_one(&mut self, random: &mut StdRng, method: &str, padding: usize) -> bool {
        let (id, word) = (random.next_u64() / 2, format!("{:016x}", random.next_u64()));
        let message = format!("{word}{}", "x".repeat(padding));
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method,
            "params": {"message": message, "timeout": TIMEOUT_MS}});
        self.open.insert(id, word);
        self.send(&request)
    }

    /// Takes some questions back; they are answered all the same.
    pub fn cancel(&mut self, random: &mut StdRng) -> bool {
        let some: Vec<_> = self.open.keys().copied().filter(|_| random.random_bool(0.5)).collect();
        some.into_iter().all(|id| {
            self.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}))
        })
    }

    /// Sends what is no message. It costs nothing but an error.
    pub fn babble(&mut self) -> bool {
        ["{", "[]", "null", r#"{"jsonrpc":"2.0","method":1}"#]
            .iter()
            .all(|text| self.socket.send_message((*text).into()).is_ok())
    }

    /// Leaves without a word, not even from the kernel. The daemon finds out when it answers; what it was
    /// asked is never answered by a host.
    pub fn vanish(mut self, random: &mut StdRng) {
        self.ask_one(random, "vscode/getChatHistory", 0);
        self.socket.vanish();
    }

    pub fn half_close(&mut self) {
        self.socket.raw().shut_down(Shutdown::Write);
    }

    /// Reads until every question is answered, exactly once. False if the daemon has hung up.
    pub fn read(&mut self) -> bool {
        while !self.open.is_empty() {
            let Some(text) = self.socket.next_text() else { return false };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["method"] == "$/progress" {
                continue;
            }
            let Some(id) = message["id"].as_u64() else {
                // To the babble.
                assert!(message["error"]["data"]["kind"].is_string(), "{message}");
                continue;
            };
            let word = self
                .open
                .remove(&id)
                .unwrap_or_else(|| panic!("an answer that nobody asked for: {message}"));
            match &message["error"] {
                Value::Null => {
                    let response = message["result"]["response"].as_str().unwrap_or_default();
                    assert!(response.contains(&word), "the answer to another question");
                    self.answered += 1;
                }
                error => {
                    let kind = error["data"]["kind"].as_str().unwrap_or_default();
                    assert!(KINDS.contains(&kind), "{error}");
                    self.failed += 1;
                }
            }
        }
        true
    }

    fn send(&mut self, message: &Value) -> bool {
        self.socket.send_message(message.to_string().into()).is_ok()
    }
}
