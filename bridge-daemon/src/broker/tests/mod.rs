//! Each decision, one by one. The harness is a [`World`]: a broker, a clock that only moves when told,
//! and what each connection received.

mod choices;
mod endings;
mod grants;
mod hosts;
mod limits;
mod operations;
mod requests;

use std::collections::HashMap;

use bridge_protocol::Rights;
use serde_json::{Value, json};

use super::*;

pub(super) struct World {
    pub broker: Broker,
    pub now: Instant,
    pub received: HashMap<PeerId, Vec<Value>>,
    pub closed: Vec<(PeerId, CloseReason)>,
    pub reading: HashMap<PeerId, bool>,
    pub calls: Vec<(Call, Role, String)>,
    pub records: Vec<RequestRecord>,
    /// Whether what is sent goes out at once; otherwise it stays queued until `flush`.
    pub fast: bool,
    unsent: HashMap<PeerId, (usize, usize)>,
}

impl World {
    pub fn new(host_wait: HostWait, limits: Limits) -> Self {
        let session = "test".parse().unwrap();
        Self {
            broker: Broker::new(session, limits, host_wait),
            now: Instant::now(),
            received: HashMap::new(),
            closed: Vec::new(),
            reading: HashMap::new(),
            calls: Vec::new(),
            records: Vec::new(),
            fast: true,
            unsent: HashMap::new(),
        }
    }

    pub fn event(&mut self, event: Event<'_>) {
        let effects = self.broker.handle(event, self.now);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { peer, text } => {
                    let value = serde_json::from_str(&text).unwrap();
                    self.received.entry(peer).or_default().push(value);
                    let load = self.unsent.entry(peer).or_default();
                    *load = (load.0 + 1, load.1 + text.len());
                    if self.fast {
                        self.flush(peer);
                    }
                }
                Effect::Close { peer, reason } => self.closed.push((peer, reason)),
                Effect::Read { peer, enabled } => _ = self.reading.insert(peer, enabled),
                Effect::Call { call, role, method, .. } => self.calls.push((call, role, method)),
                Effect::Finished(record) => self.records.push(record),
            }
        }
    }

    pub fn flush(&mut self, peer: PeerId) {
        if let Some((messages, bytes)) = self.unsent.remove(&peer) {
            self.event(Event::Sent { peer, messages, bytes });
        }
    }

    pub fn client(&mut self, number: u64) -> PeerId {
        self.client_with(number, Rights::ALL)
    }

    pub fn client_with(&mut self, number: u64, rights: Rights) -> PeerId {
        self.connect(number, Grant::Client(rights), Dialect::JsonRpc)
    }

    pub fn bridge_client(&mut self, number: u64) -> PeerId {
        self.connect(number, Grant::Client(Rights::ALL), Dialect::Bridge)
    }

    pub fn connect(&mut self, number: u64, grant: Grant, dialect: Dialect) -> PeerId {
        let peer = PeerId(number);
        self.event(Event::Connected { peer, grant, dialect });
        peer
    }

    /// A host of this grant that has not registered.
    pub fn host_with(&mut self, number: u64, grant: HostGrant) -> PeerId {
        self.connect(number, Grant::Host(grant.into()), Dialect::JsonRpc)
    }

    /// A host with the session's own token that has not registered.
    pub fn stranger(&mut self, number: u64) -> PeerId {
        self.host_with(number, general())
    }

    /// A sandbox of the daemon's own with this name and folder.
    pub fn sandbox(&mut self, number: u64, id: &str, folder: &str) -> PeerId {
        let peer = self.host_with(number, HostGrant::child(id, &TOOLS, false));
        let folders = json!([folder]);
        self.register(peer, json!({"methods": SERVED, "workspaceFolders": folders}));
        peer
    }

    pub fn host(&mut self, number: u64) -> PeerId {
        let peer = self.stranger(number);
        self.register(peer, json!({"runtimeId": format!("h{number}"), "methods": ALL}));
        peer
    }

    pub fn register(&mut self, peer: PeerId, params: Value) {
        self.broker.register(peer, serde_json::from_value(params).unwrap(), self.now).unwrap();
        let effects = self.broker.take_effects();
        self.apply(effects);
    }

    pub fn update(&mut self, peer: PeerId, params: Value) {
        // A host that is being closed is no longer registered.
        let _ = self.broker.update(peer, serde_json::from_value(params).unwrap(), self.now);
        let effects = self.broker.take_effects();
        self.apply(effects);
    }

    pub fn submit(&mut self, token: &str) {
        let _ = self.broker.submit(token, RawValue::NULL);
        let effects = self.broker.take_effects();
        self.apply(effects);
    }

    pub fn says(&mut self, peer: PeerId, message: Value) {
        self.says_text(peer, &message.to_string());
    }

    pub fn says_text(&mut self, peer: PeerId, text: &str) {
        self.event(Event::Message { peer, text });
    }

    pub fn closes(&mut self, peer: PeerId) {
        self.unsent.remove(&peer);
        self.event(Event::Closed { peer });
    }

    /// Time passes. The broker is woken when it asked for it, and only then.
    #[track_caller]
    pub fn after(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.broker.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.event(Event::Tick);
            assert_ne!(self.broker.next_deadline(), Some(due), "a tick settles what is due");
        }
        self.now = end;
    }

    pub fn take(&mut self, peer: PeerId) -> Vec<Value> {
        self.received.remove(&peer).unwrap_or_default()
    }

    #[track_caller]
    pub fn take_one(&mut self, peer: PeerId) -> Value {
        let mut all = self.take(peer);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[track_caller]
    pub fn assert_settled(&self) {
        assert_eq!(self.broker.in_flight(), 0);
        assert_eq!(self.broker.queued_bytes(), 0);
        assert_eq!(self.broker.operations(), 0);
        assert_eq!(self.broker.next_deadline(), None);
        assert!(self.broker.peers.is_empty());
    }
}

/// Families of tools that only sandboxes may serve here.
const TOOLS: [&str; 2] = ["file", "shell"];

/// What a sandbox serves here.
const SERVED: [&str; 3] = ["file/read", "file/write", "shell/run"];

/// What windows may register.
pub(super) fn general() -> HostGrant {
    HostGrant::general(
        ["sandbox", "a", "b", "edge"].map(str::to_owned),
        &["file", "shell", "action"],
    )
}

const ALL: [&str; 5] = [
    "vscode/chat",
    "vscode/showMessage",
    "vscode/executeCommand",
    "vscode/getChatHistory",
    "dapEvent",
];

fn world() -> World {
    World::new(HostWait::UpTo(seconds(10)), Limits::default())
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn call(id: impl Into<Value>, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "vscode/chat", "params": params})
}

fn tool(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn bridge_call(id: u64, params: Value) -> Value {
    json!({"id": id, "type": "vscode/chat", "params": params})
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn progress(id: &Value, value: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id, "value": value}})
}

fn event(name: &str, body: Value, client: Option<u64>) -> Value {
    let params = json!({"event": name, "body": body, "client": client});
    json!({"jsonrpc": "2.0", "method": "dapEvent", "params": params})
}

fn kind(message: &Value) -> &str {
    message["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("no error: {message}"))
}

fn cancelled(message: &Value) -> &Value {
    assert_eq!(message["method"], "$/cancelRequest", "{message}");
    &message["params"]["id"]
}
