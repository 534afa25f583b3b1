//! Random interleavings of everything that can happen, checked against a simple model.
//!
//! The model knows each request that was sent and what may still happen to it. After every step:
//! no answer reached a wrong connection or came twice, and the host saw a cancel for each request
//! that ended while it worked on it. A request that reached a host was allowed by its caller's rights, and
//! the host was the one that the request named, or the only one that it could mean. In the end, when everybody
//! has gone, all accounts are at zero.

mod steps;

use std::collections::{HashMap, HashSet};

use bridge_protocol::Rights;
use bridge_protocol::method::needed_rights;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{World, general};
use super::*;
use steps::{EDGE, FOLDERS, IDS, METHODS, RIGHTS, Step, TOOLS, Target, WINDOWS, step};

/// What became of one request, as its caller sees it.
struct Sent {
    client: PeerId,
    id: u64,
    bridge: bool,
    method: &'static str,
    target: Target,
    rights: Rights,
    answers: usize,
    client_gone: bool,
}

struct Model {
    world: World,
    next_peer: u64,
    clients: HashMap<u64, PeerId>,
    hosts: HashMap<u64, PeerId>,
    sent: Vec<Sent>,
    /// Requests that a host got and neither answered nor saw cancelled.
    working: HashMap<PeerId, Vec<u64>>,
    answered: Vec<(PeerId, u64)>,
    seen: HashSet<u64>,
    closing: Vec<PeerId>,
    /// Sandboxes that have registered once: the daemon starts them anew, so they count as if they were there.
    sandboxes: HashSet<u64>,
}

impl Model {
    fn new() -> Self {
        // Small limits, so that every one of them is met.
        let limits = Limits {
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
        let mut world = World::new(HostWait::UpTo(Duration::from_millis(1500)), limits);
        world.fast = false;
        Self {
            world,
            next_peer: 1,
            clients: HashMap::new(),
            hosts: HashMap::new(),
            sent: Vec::new(),
            working: HashMap::new(),
            answered: Vec::new(),
            seen: HashSet::new(),
            closing: Vec::new(),
            sandboxes: HashSet::new(),
        }
    }

    fn draw(&mut self) -> u64 {
        self.next_peer += 1;
        self.next_peer
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::ConnectClient(slot) if !self.clients.contains_key(&slot) => {
                let number = self.draw();
                let rights = RIGHTS[slot as usize].parse().unwrap();
                self.clients.insert(slot, self.world.client_with(number, rights));
            }
            Step::ConnectHost(slot) => {
                // The same runtime on a new connection, sometimes while the old one is there.
                let number = self.draw();
                let id = IDS[slot as usize];
                let (grant, methods, edge) = match slot {
                    0..WINDOWS => (general(), json!(["vscode/chat", "dapEvent"]), false),
                    EDGE => {
                        (HostGrant::child(id, &["action"], true), json!(["action/execute"]), true)
                    }
                    _ => (HostGrant::child(id, &["file", "shell"], false), json!(TOOLS), false),
                };
                let peer = self.world.host_with(number, grant);
                let folders = json!([FOLDERS[slot as usize]]);
                self.world.register(
                    peer,
                    json!({"runtimeId": id, "methods": methods, "workspaceFolders": folders, "edge": edge}),
                );
                if (WINDOWS..EDGE).contains(&slot) {
                    self.sandboxes.insert(slot);
                }
                if let Some(old) = self.hosts.insert(slot, peer) {
                    self.close_host(old);
                }
            }
            Step::CloseClient(slot) => {
                if let Some(peer) = self.clients.remove(&slot) {
                    self.close_client(peer);
                }
            }
            Step::CloseHost(slot) => {
                if let Some(peer) = self.hosts.remove(&slot) {
                    self.close_host(peer);
                }
            }
            Step::Request { client, bridge, timeout, method, target, size } => {
                self.request(client, bridge, timeout, method, target, size);
            }
            Step::Answer { host, which, fails } => self.answer(host, which, fails),
            Step::AnswerTwice { host, which } => {
                let Some(peer) = self.hosts.get(&host) else { return };
                let mine: Vec<_> =
                    self.answered.iter().filter(|(owner, _)| owner == peer).collect();
                if let Some((_, id)) = pick(&mine, which) {
                    let text = json!({"jsonrpc": "2.0", "id": id, "result": "again"});
                    self.world.says(*peer, text);
                }
            }
            Step::Progress { host, which } => {
                let Some(peer) = self.hosts.get(&host) else { return };
                let working = self.working.get(peer).cloned().unwrap_or_default();
                if let Some(id) = pick(&working, which) {
                    let params = json!({"id": id, "value": {"text": "x"}});
                    self.world.says(
                        *peer,
                        json!({"jsonrpc": "2.0", "method": "$/progress", "params": params}),
                    );
                }
            }
            Step::Cancel { client, which } => {
                let Some(peer) = self.clients.get(&client) else { return };
                let mine: Vec<_> =
                    self.sent.iter().filter(|sent| sent.client == *peer && !sent.bridge).collect();
                if let Some(sent) = pick(&mine, which) {
                    let params = json!({"id": sent.id});
                    self.world.says(
                        *peer,
                        json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params}),
                    );
                }
            }
            Step::Started { client, operation } => {
                let Some(peer) = self.clients.get(&client) else { return };
                let body = json!({"operationId": operation, "resumeToken": format!("t{operation}"), "timeoutMs": 1000});
                self.world.says(
                    *peer,
                    json!({"type": "dapEvent", "event": "asyncOperationStarted", "body": body}),
                );
            }
            Step::Submit { host, operation } => {
                let Some(peer) = self.hosts.get(&host) else { return };
                let body = json!({"operationId": operation, "resumeToken": format!("t{operation}"), "result": 1});
                let params = json!({"event": "asyncOperationSubmit", "body": body});
                self.world
                    .says(*peer, json!({"jsonrpc": "2.0", "method": "dapEvent", "params": params}));
            }
            Step::Noise { client } => {
                if let Some(peer) = self.clients.get(&client) {
                    self.world.says_text(*peer, "{");
                }
            }
            Step::Wait(milliseconds) => {
                self.world.after(Duration::from_millis(milliseconds.into()));
            }
            Step::Flush => self.flush(),
            Step::Update { host, focused } => {
                let Some(peer) = self.hosts.get(&host) else { return };
                self.world.update(*peer, json!({"focused": focused}));
            }
            Step::SubmitFromOutside { operation } => {
                self.world.submit(&format!("t{operation}"));
            }
            Step::FinishClosing => self.finish_closing(),
            Step::ConnectClient(_) => {}
        }
        self.check();
    }

    fn request(
        &mut self,
        client: u64,
        bridge: bool,
        timeout: u16,
        method: &'static str,
        target: Target,
        size: u16,
    ) {
        let Some(peer) = self.clients.get(&client).copied() else { return };
        if self.world.reading.get(&peer) == Some(&false) {
            return; // A connection that is not read can send nothing.
        }
        if self.closing.contains(&peer) {
            return; // Nobody listens to it any more.
        }
        let id = self.draw();
        let mut params = json!({"tag": id, "timeout": timeout, "pad": "x".repeat(size.into())});
        match target {
            Target::Any => {}
            Target::Host(host) => params["runtimeId"] = json!(IDS[host as usize]),
            Target::Path(path) => params["path"] = json!(path),
        }
        let rights = RIGHTS[client as usize].parse().unwrap();
        let sent = Sent {
            client: peer,
            id,
            bridge,
            method,
            target,
            rights,
            answers: 0,
            client_gone: false,
        };
        self.sent.push(sent);
        self.world.says(
            peer,
            match bridge {
                true => json!({"id": id, "type": method, "params": params}),
                false => json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
            },
        );
    }

    fn answer(&mut self, host: u64, which: usize, fails: bool) {
        let Some(peer) = self.hosts.get(&host).copied() else { return };
        let working = self.working.get(&peer).cloned().unwrap_or_default();
        let Some(id) = pick(&working, which).copied() else { return };
        self.working.get_mut(&peer).unwrap().retain(|other| *other != id);
        self.answered.push((peer, id));
        self.world.says(
            peer,
            match fails {
                true => json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}}),
                false => json!({"jsonrpc": "2.0", "id": id, "result": {"n": id}}),
            },
        );
    }

    fn flush(&mut self) {
        let peers: Vec<_> = self.clients.values().chain(self.hosts.values()).copied().collect();
        self.finish_closing();
        for peer in peers {
            self.world.flush(peer);
        }
    }

    fn close_client(&mut self, peer: PeerId) {
        self.world.closes(peer);
        for sent in self.sent.iter_mut().filter(|sent| sent.client == peer) {
            sent.client_gone = true;
        }
    }

    fn close_host(&mut self, peer: PeerId) {
        self.world.closes(peer);
        self.working.remove(&peer);
    }

    /// Reads what everybody got, and checks that it was theirs to get.
    fn check(&mut self) {
        for (peer, messages) in std::mem::take(&mut self.world.received) {
            for message in messages {
                self.check_message(peer, &message);
            }
        }
        for (peer, _) in std::mem::take(&mut self.world.closed) {
            self.closing.push(peer);
        }
        // Forwarding may have sent something in turn.
        if !self.world.received.is_empty() {
            self.check();
        }
    }

    /// A connection that was asked to close goes away some time later, not at once.
    fn finish_closing(&mut self) {
        for peer in std::mem::take(&mut self.closing) {
            if let Some(slot) = slot_of(&self.clients, peer) {
                self.clients.remove(&slot);
                self.close_client(peer);
            } else if let Some(slot) = slot_of(&self.hosts, peer) {
                self.hosts.remove(&slot);
                self.close_host(peer);
            }
        }
    }

    fn check_message(&mut self, peer: PeerId, message: &Value) {
        match message["method"].as_str() {
            Some(method) if METHODS.contains(&method) => {
                self.check_route(peer, method, message["params"]["tag"].as_u64().unwrap());
                let id = message["id"].as_u64().unwrap();
                assert!(self.seen.insert(id), "request {id} was forwarded twice");
                self.working.entry(peer).or_default().push(id);
            }
            Some("$/cancelRequest") => {
                let id = message["params"]["id"].as_u64().unwrap();
                let working = self.working.entry(peer).or_default();
                assert!(working.contains(&id), "cancel of {id}, which the host does not work on");
                working.retain(|other| *other != id);
            }
            Some("$/progress") => {
                let id = message["params"]["id"].as_u64().unwrap();
                let sent = self.sent.iter().find(|sent| sent.id == id).unwrap();
                assert!(
                    sent.client == peer && sent.answers == 0 && !sent.bridge,
                    "stray progress {id}"
                );
            }
            Some("dapEvent") => {}
            Some(other) => panic!("unexpected {other}"),
            None if message["type"] == "dapEvent" => {}
            None if message["method"] == "dapEvent" => {}
            None => {
                let Some(id) = message["id"].as_u64() else { return };
                let sent = self.sent.iter_mut().find(|sent| sent.id == id).unwrap();
                assert_eq!(sent.client, peer, "answer {id} reached a wrong connection");
                assert_eq!(sent.answers, 0, "answer {id} came twice");
                assert_eq!(message["success"].is_boolean(), sent.bridge, "wrong dialect");
                sent.answers += 1;
            }
        }
    }

    /// A request may have reached this host: its caller had the rights, and nobody else could be meant.
    fn check_route(&self, host: PeerId, method: &str, tag: u64) {
        let sent = self.sent.iter().find(|sent| sent.id == tag).unwrap();
        assert_eq!(sent.method, method);
        assert!(
            sent.rights.include(needed_rights(method)),
            "{method} by a client with {}",
            sent.rights
        );
        let slot = slot_of(&self.hosts, host)
            .unwrap_or_else(|| panic!("{method} reached a host that has gone"));
        let (id, target) = (IDS[slot as usize], sent.target);
        match method {
            "action/execute" => assert_eq!(slot, EDGE, "an edge takes its methods"),
            "vscode/chat" => {
                assert!(slot < WINDOWS, "a chat reached {id}");
                assert!(
                    !matches!(target, Target::Host(named) if named != slot),
                    "{target:?} reached {id}"
                );
            }
            tool => {
                let meant = match target {
                    Target::Host(named) => Some(named),
                    Target::Path(path) if path.starts_with('/') => self.by_path(tool, path),
                    Target::Path(_) | Target::Any => self.only_sandbox(),
                };
                assert_eq!(meant, Some(slot), "{tool} for {target:?} reached {id}");
            }
        }
    }

    fn only_sandbox(&self) -> Option<u64> {
        let mut sandboxes = self.sandboxes.iter().copied();
        sandboxes.next().filter(|_| self.sandboxes.len() == 1)
    }

    /// Written out for the paths of this model.
    fn by_path(&self, tool: &str, path: &str) -> Option<u64> {
        let (outer, inner) = (WINDOWS, WINDOWS + 1);
        let holders: &[u64] = match path {
            "/w/inner/x" => &[inner, outer],
            "/w" | "/w/innermost" => &[outer],
            _ => &[],
        };
        let holder = holders.iter().copied().find(|slot| self.sandboxes.contains(slot));
        holder.or_else(|| self.only_sandbox().filter(|_| tool.starts_with("file/")))
    }

    /// Whatever is left is decided by time, or by the end of the daemon.
    fn end(&mut self, by_drain: bool) {
        self.finish_closing();
        self.flush();
        match by_drain {
            true => self.world.event(Event::Drain),
            false => self.world.after(Duration::from_secs(3600)),
        }
        self.check();
        self.finish_closing();
        self.check();
        for sent in &self.sent {
            assert!(
                sent.answers == 1 || sent.client_gone,
                "request {} was never answered",
                sent.id
            );
        }
        for (host, working) in &self.working {
            assert!(working.is_empty(), "{host:?} was not told that nobody waits for {working:?}");
        }
        self.finish_closing();
        for peer in
            self.clients.drain().chain(self.hosts.drain()).map(|(_, peer)| peer).collect::<Vec<_>>()
        {
            self.world.closes(peer);
        }
        self.world.assert_settled();
    }
}

fn pick<T>(items: &[T], which: usize) -> Option<&T> {
    (!items.is_empty()).then(|| &items[which % items.len()])
}

fn slot_of(peers: &HashMap<u64, PeerId>, peer: PeerId) -> Option<u64> {
    peers.iter().find(|(_, other)| **other == peer).map(|(slot, _)| *slot)
}

proptest! {
    #[test]
    fn every_interleaving_keeps_the_promises(steps in prop::collection::vec(step(), 1..120), by_drain: bool) {
        let mut model = Model::new();
        for step in steps {
            model.run(step);
        }
        model.end(by_drain);
    }
}
