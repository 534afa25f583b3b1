use std::collections::HashMap;
use std::net::Shutdown;

use harness::{Daemon, Socket};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::{Value, json};

/// Timeout of requests in milliseconds, for requests that the host does not answer.
const TIMEOUT_MS: u64 = 500;

/// Error kinds that the daemon may return instead of a host's answer.
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

/// A client connection.
pub struct Client {
    socket: Socket,
    /// Unanswered requests by id, each with a random word that its answer must contain.
    open: HashMap<u64, String>,
    pub answered: usize,
    pub failed: usize,
}

impl Client {
    pub fn connect(daemon: &Daemon) -> Self {
        Self { socket: daemon.client(), open: HashMap::new(), answered: 0, failed: 0 }
    }

    /// Sends a few requests of different kinds. False if the connection has ended.
    pub fn send_requests(&mut self, random: &mut StdRng) -> bool {
        (0..random.random_range(1..20)).all(|_| match random.random_range(0..10) {
            0 => self.send_request(random, "vscode/getChatHistory", 0), // The hosts never answer this method.
            1 => self.send_request(random, "no/such/method", 0),
            2 | 3 => self.send_request(random, "vscode/chat", 100_000),
            _ => self.send_request(random, "vscode/chat", 10),
        })
    }

    /// Sends one request that fits into the socket buffers, even if the daemon does not read.
    pub fn send_small_request(&mut self, random: &mut StdRng) -> bool {
        self.send_request(random, "vscode/chat", 10)
    }

    /// Sends one request of several megabytes.
    pub fn send_large_request(&mut self, random: &mut StdRng) -> bool {
        self.send_request(random, "vscode/chat", 4 << 20)
    }

    fn send_request(&mut self, random: &mut StdRng, method: &str, padding: usize) -> bool {
        let (id, word) = (random.next_u64() / 2, format!("{:016x}", random.next_u64()));
        let message = format!("{word}{}", "x".repeat(padding));
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method,
            "params": {"message": message, "timeout": TIMEOUT_MS}});
        self.open.insert(id, word);
        self.send(&request)
    }

    /// Cancels some requests. They still get an answer each.
    pub fn cancel(&mut self, random: &mut StdRng) -> bool {
        let some: Vec<_> = self.open.keys().copied().filter(|_| random.random_bool(0.5)).collect();
        some.into_iter().all(|id| {
            self.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}))
        })
    }

    /// Sends texts that are no messages. Each must only cause an error answer.
    pub fn send_garbage(&mut self) -> bool {
        ["{", "[]", "null", r#"{"jsonrpc":"2.0","method":1}"#]
            .iter()
            .all(|text| self.socket.send_message((*text).into()).is_ok())
    }

    /// Drops the connection without notice, not even from Linux. The daemon notices it when it answers the
    /// last request, which the hosts never answer.
    pub fn vanish(mut self, random: &mut StdRng) {
        self.send_request(random, "vscode/getChatHistory", 0);
        self.socket.vanish();
    }

    pub fn half_close(&mut self) {
        self.socket.raw().shut_down(Shutdown::Write);
    }

    /// Reads until every request has exactly one answer. False if the daemon has closed the connection.
    pub fn read(&mut self) -> bool {
        while !self.open.is_empty() {
            let Some(text) = self.socket.next_text() else { return false };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["method"] == "$/progress" {
                continue;
            }
            let Some(id) = message["id"].as_u64() else {
                // An answer to garbage has no id.
                assert!(message["error"]["data"]["kind"].is_string(), "{message}");
                continue;
            };
            let word = self
                .open
                .remove(&id)
                .unwrap_or_else(|| panic!("an answer without a request: {message}"));
            match &message["error"] {
                Value::Null => {
                    let response = message["result"]["response"].as_str().unwrap_or_default();
                    assert!(response.contains(&word), "the answer to another request");
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
