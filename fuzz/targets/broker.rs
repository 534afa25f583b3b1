//! The broker: with any events in any order, no request is answered twice, and when all connections have
//! closed, no state is left.
//!
//! An input is a list of lines. Each line is an event: a letter, a digit that selects a connection, and for
//! some events a text. [`World::step`] defines the letters.

#![no_main]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bridge_daemon::broker::{
    Broker, Call, Effect, Event, Grant, HostGrant, HostWait, Limits, PeerId,
};
use bridge_protocol::{CallId, Dialect, ErrorKind, Message, Rights};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

/// Small limits, so that inputs reach each of them.
const LIMITS: Limits = Limits {
    client_requests: 6,
    client_bytes: 2000,
    total_requests: 12,
    message_bytes: 250,
    queue_messages: 8,
    queue_bytes: 3000,
    total_bytes: 6000,
    operations: 3,
    operation_bytes: 500,
    violations: 3,
};

struct World {
    broker: Broker,
    now: Instant,
    /// All open connections.
    peers: Vec<PeerId>,
    connected: u64,
    requests: u64,
    /// Number of unanswered requests for each connection and id.
    open: HashMap<(PeerId, String), usize>,
    /// Requests that hosts have received.
    forwarded: Vec<(PeerId, u64)>,
    /// Messages and bytes that are still queued, by connection.
    unsent: HashMap<PeerId, (usize, usize)>,
    /// Unanswered calls of the daemon's own methods.
    calls: Vec<Call>,
}

fuzz_target!(|text: &str| {
    let session = "fuzz".parse().expect("a session id");
    let mut world = World {
        broker: Broker::new(session, LIMITS, HostWait::UpTo(Duration::from_millis(1500))),
        now: Instant::now(),
        peers: Vec::new(),
        connected: 0,
        requests: 0,
        open: HashMap::new(),
        forwarded: Vec::new(),
        unsent: HashMap::new(),
        calls: Vec::new(),
    };
    for line in text.lines().take(200) {
        world.step(line);
    }
    world.end();
});

impl World {
    fn step(&mut self, line: &str) {
        let mut characters = line.chars();
        let Some(letter) = characters.next() else { return };
        let digit = characters.next().and_then(|digit| digit.to_digit(10)).unwrap_or_default();
        let text = characters.as_str();
        match letter {
            'c' => _ = self.connect(Grant::Client(Rights::ALL), Dialect::JsonRpc),
            'b' => _ = self.connect(Grant::Client(Rights::ALL), Dialect::Bridge),
            'h' => self.connect_host(digit),
            't' => self.pass_time(Duration::from_millis(300) * digit),
            'd' => self.event(Event::Drain),
            'k' => self.finish_call(digit % 2 == 0),
            'o' => {
                let _ = self.broker.submit(text, RawValue::TRUE);
                let effects = self.broker.take_effects();
                self.apply(effects);
            }
            _ => {
                let Some(which) = (digit as usize).checked_rem(self.peers.len()) else { return };
                self.step_of_peer(letter, self.peers[which], text);
            }
        }
    }

    fn step_of_peer(&mut self, letter: char, peer: PeerId, text: &str) {
        let json = if text.is_empty() { "{}" } else { text };
        match letter {
            'x' => self.close(peer),
            'f' => self.flush(peer),
            // Any text as a message.
            'm' => self.sends(peer, text),
            // A request in either dialect, and the cancellation of the latest request.
            'r' | 'q' | 'z' => {
                self.requests += u64::from(letter != 'z');
                let id = self.requests;
                let call = format!(r#""id":{id},"params":{json}"#);
                let cancel = format!(r#""method":"$/cancelRequest","params":{{"id":{id}}}"#);
                match letter {
                    'r' => self.sends_rpc(peer, &format!(r#"{call},"method":"vscode/chat""#)),
                    'q' => self.sends(peer, &format!(r#"{{{call},"type":"vscode/chat"}}"#)),
                    _ => self.sends_rpc(peer, &cancel),
                }
            }
            // A host's answer or progress for the latest request that it got; with `A`, for a request that
            // any host got.
            'a' | 'A' | 'e' | 'p' => {
                let mine = |(host, _): &&(PeerId, u64)| *host == peer || letter == 'A';
                let Some((_, id)) = self.forwarded.iter().rev().find(mine) else { return };
                let error = format!(r#"{{"code":1,"message":"no","data":{json}}}"#);
                let progress = format!(r#"{{"id":{id},"value":{json}}}"#);
                let members = match letter {
                    'e' => format!(r#""id":{id},"error":{error}"#),
                    'p' => format!(r#""method":"$/progress","params":{progress}"#),
                    _ => format!(r#""id":{id},"result":{json}"#),
                };
                self.sends_rpc(peer, &members);
            }
            // An operation begins at a client, or ends at a host.
            'y' | 'Y' => {
                let end = if letter == 'y' { "Started" } else { "Submit" };
                let event = format!(r#""event":"asyncOperation{end}","body":{json}"#);
                self.sends(peer, &format!(r#"{{"type":"dapEvent",{event}}}"#));
            }
            _ => {}
        }
    }

    fn sends_rpc(&mut self, peer: PeerId, members: &str) {
        self.sends(peer, &format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
    }

    fn connect(&mut self, grant: Grant, dialect: Dialect) -> PeerId {
        self.connected += 1;
        let peer = PeerId(self.connected);
        self.event(Event::Connected { peer, grant, dialect });
        self.peers.push(peer);
        peer
    }

    /// Connects a host. A runtime may register on a new connection while its old connection is still open.
    fn connect_host(&mut self, number: u32) {
        let grant = Grant::Host(HostGrant::general([], &[]).into());
        let peer = self.connect(grant, Dialect::JsonRpc);
        let params =
            json!({"runtimeId": format!("h{number}"), "methods": ["vscode/chat", "dapEvent"]});
        let params = serde_json::from_value(params).expect("params of runtime/register");
        let _ = self.broker.register(peer, params, self.now);
        let effects = self.broker.take_effects();
        self.apply(effects);
    }

    fn sends(&mut self, peer: PeerId, text: &str) {
        let id = match Message::parse(text) {
            Ok(Message::Request(request)) => Some(request.id),
            Ok(_) => None,
            Err(rejection) => rejection.id,
        };
        if let Some(id) = id {
            *self.open.entry((peer, id.key().into_owned())).or_default() += 1;
        }
        self.event(Event::Message { peer, text });
    }

    fn event(&mut self, event: Event<'_>) {
        let effects = self.broker.handle(event, self.now);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { peer, text } => self.receives(peer, &text),
                Effect::Call { call, .. } => self.calls.push(call),
                Effect::Close { .. } | Effect::Read { .. } | Effect::Finished(_) => {}
            }
        }
    }

    fn receives(&mut self, peer: PeerId, text: &str) {
        #[derive(Deserialize)]
        struct Received<'a> {
            method: Option<String>,
            r#type: Option<String>,
            #[serde(borrow)]
            id: Option<&'a RawValue>,
        }
        assert!(self.peers.contains(&peer), "a message for a closed connection: {text}");
        let (messages, bytes) = self.unsent.entry(peer).or_default();
        (*messages, *bytes) = (*messages + 1, *bytes + text.len());
        let received: Received<'_> = serde_json::from_str(text).expect("the broker sends JSON");
        let Some(id) = received.id else { return };
        if received.method.is_some() {
            self.forwarded.push((peer, id.get().parse().expect("an id that the broker assigned")));
        } else if received.r#type.is_none() {
            let id = CallId::from_raw(id.get()).expect("an answer names its request");
            let open = self.open.get_mut(&(peer, id.key().into_owned())).filter(|open| **open > 0);
            *open.unwrap_or_else(|| panic!("no such request, or a second answer: {text}")) -= 1;
        }
    }

    fn finish_call(&mut self, succeeds: bool) {
        let Some(call) = self.calls.pop() else { return };
        let outcome = match succeeds {
            true => Ok(RawValue::NULL.to_owned()),
            false => Err(ErrorKind::InvalidParams.error("refused")),
        };
        self.event(Event::Called { call, outcome });
    }

    fn flush(&mut self, peer: PeerId) {
        if let Some((messages, bytes)) = self.unsent.remove(&peer) {
            self.event(Event::Sent { peer, messages, bytes });
        }
    }

    fn close(&mut self, peer: PeerId) {
        self.peers.retain(|other| *other != peer);
        self.unsent.remove(&peer);
        self.event(Event::Closed { peer });
    }

    fn pass_time(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.broker.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.event(Event::Tick);
            assert_ne!(
                self.broker.next_deadline(),
                Some(due),
                "a tick handles the deadline that has passed"
            );
        }
        self.now = end;
    }

    fn end(mut self) {
        while let Some(peer) = self.peers.pop() {
            self.peers.push(peer);
            self.close(peer);
        }
        while !self.calls.is_empty() {
            self.finish_call(true);
        }
        assert_eq!((self.broker.in_flight(), self.broker.queued_bytes()), (0, 0));
        assert_eq!((self.broker.operations(), self.broker.next_deadline()), (0, None));
    }
}
