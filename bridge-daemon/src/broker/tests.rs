//! Each unhappy end, one by one. The harness is a [`World`]: a broker, a clock that only moves when
//! told, and what each connection received.

use std::collections::HashMap;

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
        self.connect(number, Role::Client, Dialect::JsonRpc)
    }

    pub fn bridge_client(&mut self, number: u64) -> PeerId {
        self.connect(number, Role::Client, Dialect::Bridge)
    }

    pub fn connect(&mut self, number: u64, role: Role, dialect: Dialect) -> PeerId {
        let peer = PeerId(number);
        self.event(Event::Connected { peer, role, dialect });
        peer
    }

    pub fn host(&mut self, number: u64) -> PeerId {
        let peer = self.connect(number, Role::Host, Dialect::JsonRpc);
        self.register(peer, json!({"runtimeId": format!("h{number}"), "methods": ALL}));
        peer
    }

    pub fn register(&mut self, peer: PeerId, params: Value) {
        self.broker.register(peer, serde_json::from_value(params).unwrap(), self.now).unwrap();
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

    pub fn after(&mut self, time: Duration) {
        self.now += time;
        self.event(Event::Tick);
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
        assert!(self.broker.is_idle());
    }
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

fn bridge_call(id: u64, params: Value) -> Value {
    json!({"id": id, "type": "vscode/chat", "params": params})
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn kind(message: &Value) -> &str {
    message["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("no error: {message}"))
}

fn cancelled(message: &Value) -> &Value {
    assert_eq!(message["method"], "$/cancelRequest", "{message}");
    &message["params"]["id"]
}

#[test]
fn answers_go_to_the_caller_under_its_own_id() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.client(2), w.client(3));
    w.says(a, call("same", json!({"from": "a"})));
    w.says(b, call("same", json!({"from": "b"})));
    let asked = w.take(host);
    assert_ne!(asked[0]["id"], asked[1]["id"]);
    w.says(host, result(&asked[1]["id"], json!("for b")));
    w.says(host, result(&asked[0]["id"], json!("for a")));
    assert_eq!(w.take_one(a), json!({"jsonrpc": "2.0", "id": "same", "result": "for a"}));
    assert_eq!(w.take_one(b), json!({"jsonrpc": "2.0", "id": "same", "result": "for b"}));
}

#[test]
fn aliases_reach_the_host_under_the_canonical_name() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, json!({"id": 1, "type": "show_message", "params": {"message": "x"}}));
    assert_eq!(w.take_one(host)["method"], "vscode/showMessage");
}

#[test]
fn payloads_travel_byte_for_byte_both_ways() {
    let payload = r#"{"b":1e400,"a":1.0,"s":"\u0031\ud800","n":12345678901234567890}"#;
    let mut broker = Broker::new("t".parse().unwrap(), Limits::default(), HostWait::UntilDeadline);
    let now = Instant::now();
    let (client, host) = (PeerId(1), PeerId(2));
    broker.handle(
        Event::Connected { peer: client, role: Role::Client, dialect: Dialect::JsonRpc },
        now,
    );
    broker
        .handle(Event::Connected { peer: host, role: Role::Host, dialect: Dialect::JsonRpc }, now);
    let methods = vec!["vscode/chat".to_owned()];
    let params = bridge_protocol::methods::RegisterParams { methods, ..Default::default() };
    broker.register(host, params, now).unwrap();
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":"\u0031","method":"vscode/chat","params":{payload}}}"#);
    let sent = |effects: &[Effect]| match effects {
        [Effect::Send { text, .. }, ..] => text.clone(),
        other => panic!("{other:?}"),
    };
    let forwarded = sent(&broker.handle(Event::Message { peer: client, text: &text }, now));
    assert_eq!(
        forwarded,
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"vscode/chat","params":{payload}}}"#)
    );
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#);
    let returned = sent(&broker.handle(Event::Message { peer: host, text: &answer }, now));
    assert_eq!(returned, format!(r#"{{"jsonrpc":"2.0","id":"\u0031","result":{payload}}}"#));
}

#[test]
fn the_bridge_dialect_is_answered_in_kind() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    for (answer, expected) in [
        (
            json!({"result": {"response": "4"}}),
            json!({"id": 7, "success": true, "result": {"response": "4"}}),
        ),
        (json!({"result": null}), json!({"id": 7, "success": true, "result": {}})),
        (
            json!({"error": {"code": 5, "message": "no", "data": [1]}}),
            json!({"id": 7, "success": false, "error": "no", "code": 5, "data": [1]}),
        ),
    ] {
        w.says(client, bridge_call(7, json!({})));
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = w.take_one(host)["id"].clone();
        w.says(host, answer);
        assert_eq!(w.take_one(client), expected);
    }
}

#[test]
fn equal_ids_of_the_bridge_dialect_are_each_answered() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    for n in 0..3 {
        w.says(client, bridge_call(9, json!({"n": n})));
    }
    for asked in w.take(host) {
        w.says(host, result(&asked["id"], asked["params"].clone()));
    }
    let answers: Vec<_> =
        w.take(client).iter().map(|answer| answer["result"]["n"].clone()).collect();
    assert_eq!(answers, [0, 1, 2]);
}

#[test]
fn a_repeated_json_rpc_id_is_refused_under_no_id() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call("1", json!({})));
    w.says_text(client, r#"{"jsonrpc":"2.0","id":"\u0031","method":"vscode/chat"}"#);
    let refused = w.take_one(client);
    assert_eq!((kind(&refused), &refused["id"]), ("InvalidRequest", &Value::Null));
    w.says(client, call(1, json!({})));
    assert_eq!(w.take(host).len(), 2, "the number 1 is not the string \"1\"");
}

#[test]
fn a_host_error_is_passed_on_untouched() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let error = json!({"code": 77, "message": "mine", "data": {"own": true}});
    let id = w.take_one(host)["id"].clone();
    w.says(host, json!({"jsonrpc": "2.0", "id": id, "error": error}));
    assert_eq!(w.take_one(client)["error"], error);
    assert_eq!(w.records[0].outcome, "error 77");
}

#[test]
fn a_malformed_answer_fails_that_request_only() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.says(client, call(2, json!({})));
    let asked = w.take(host);
    w.says(host, json!({"jsonrpc": "2.0", "id": asked[0]["id"], "error": "text"}));
    assert_eq!(kind(&w.take_one(client)), "BadHostResponse");
    w.says(host, result(&asked[1]["id"], json!(1)));
    assert_eq!(w.take_one(client)["result"], 1);
}

#[test]
fn late_double_and_foreign_answers_are_dropped_and_counted() {
    let mut w = world();
    let (host, other, client) = (w.host(1), w.host(3), w.client(2));
    w.says(client, call(1, json!({"runtimeId": "h1"})));
    let id = w.take_one(host)["id"].clone();
    w.says(other, result(&id, json!("forged by another host")));
    w.says(client, result(&id, json!("forged by a client")));
    assert!(w.take(client).is_empty());
    w.says(host, result(&id, json!("real")));
    w.says(host, result(&id, json!("again")));
    assert_eq!(w.take_one(client)["result"], "real");
    assert_eq!((w.broker.counters().late_answers, w.broker.counters().forged_answers), (2, 1));
}

#[test]
fn without_a_host_requests_wait_and_then_say_how_to_attach_one() {
    let mut w = world();
    let client = w.client(2);
    w.says(client, call(1, json!({"timeout": 30_000})));
    w.after(Duration::from_millis(9_999));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    let error = w.take_one(client);
    assert_eq!(kind(&error), "HostUnavailable");
    assert!(error["error"]["message"].as_str().unwrap().contains("bridge-daemon run"));
}

#[test]
fn a_run_that_expects_an_editor_waits_until_the_deadline() {
    let mut w = World::new(HostWait::UntilDeadline, Limits::default());
    let client = w.client(2);
    w.says(client, call(1, json!({"timeout": 25_000, "message": "early"})));
    w.after(seconds(20));
    assert!(w.take(client).is_empty());
    let host = w.host(1);
    let asked = w.take_one(host);
    assert_eq!(asked["params"]["message"], "early");
    // The time spent waiting counts.
    w.after(seconds(5));
    assert_eq!(kind(&w.take_one(client)), "Timeout");
    assert_eq!(*cancelled(&w.take_one(host)), asked["id"]);
}

#[test]
fn parked_requests_keep_their_order() {
    let mut w = world();
    let client = w.client(2);
    for n in 0..20 {
        w.says(client, call(n, json!({"n": n})));
    }
    let host = w.host(1);
    let order: Vec<_> = w.take(host).iter().map(|asked| asked["params"]["n"].clone()).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[test]
fn when_the_host_goes_requests_in_flight_fail_and_new_ones_wait_for_its_return() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.closes(host);
    let gone = w.take_one(client);
    assert_eq!(kind(&gone), "HostGone");
    assert_eq!(gone["error"]["data"]["mayHaveExecuted"], true);
    w.says(client, call(2, json!({"runtimeId": "h1"})));
    assert!(w.take(client).is_empty());
    let back = w.connect(9, Role::Host, Dialect::JsonRpc);
    w.register(back, json!({"runtimeId": "h1", "methods": ALL}));
    let id = w.take_one(back)["id"].clone();
    w.says(back, result(&id, json!("ok")));
    assert_eq!(w.take_one(client)["result"], "ok");
}

#[test]
fn a_host_that_registers_again_elsewhere_replaces_itself() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let newer = w.connect(5, Role::Host, Dialect::JsonRpc);
    w.register(newer, json!({"runtimeId": "h1", "methods": ALL}));
    assert_eq!(w.closed, [(host, CloseReason::Replaced)]);
    assert_eq!(kind(&w.take_one(client)), "HostGone");
    w.closes(host);
    w.says(client, call(2, json!({})));
    assert_eq!(
        w.take(newer).len(),
        1,
        "the end of the old connection must not take the new one off"
    );
}

#[test]
fn cancel_answers_once_and_tells_the_host() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call("a", json!({})));
    let id = w.take_one(host)["id"].clone();
    w.says_text(client, r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"\u0061"}}"#);
    assert_eq!(kind(&w.take_one(client)), "RequestCancelled");
    assert_eq!(*cancelled(&w.take_one(host)), id);
    w.says(host, result(&id, json!("late")));
    w.says(client, json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}}));
    assert!(w.take(client).is_empty() && w.take(host).is_empty());
}

#[test]
fn nobody_can_cancel_for_somebody_else() {
    let mut w = world();
    let (host, client, other) = (w.host(1), w.client(2), w.client(3));
    w.says(client, call("a", json!({})));
    w.take(host);
    w.says(other, json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}}));
    assert!(w.take(host).is_empty() && w.take(client).is_empty());
}

#[test]
fn when_the_caller_goes_the_host_is_told() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    w.closes(client);
    assert_eq!(*cancelled(&w.take_one(host)), id);
    assert_eq!(w.records[0].outcome, "CallerGone");
}

#[test]
fn deadlines_name_method_and_duration_and_tell_the_host() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({"timeout": 1500.5})));
    let id = w.take_one(host)["id"].clone();
    w.after(Duration::from_millis(1500));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    let error = w.take_one(client);
    assert_eq!(kind(&error), "Timeout");
    assert_eq!(
        error["error"]["message"],
        "vscode/chat timed out: the host did not answer within 1.5 s"
    );
    assert_eq!(*cancelled(&w.take_one(host)), id);
}

#[test]
fn bridge_dialect_callers_hear_of_a_deadline_before_their_own() {
    let mut w = world();
    let (_host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, bridge_call(1, json!({"timeout": 10_000})));
    w.after(Duration::from_millis(9_499));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    let answer = w.take_one(client);
    assert_eq!((&answer["success"], &answer["code"]), (&json!(false), &json!(-32052)));
}

#[test]
fn a_wrong_timeout_is_an_error_not_a_default() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({"timeout": "soon"})));
    assert_eq!(kind(&w.take_one(client)), "InvalidParams");
    assert!(w.take(host).is_empty());
}

#[test]
fn progress_reaches_the_one_caller_and_extends_a_default_deadline_only() {
    let mut w = world();
    let (host, other, client, stranger) = (w.host(1), w.host(4), w.client(2), w.client(3));
    w.says(client, call("a", json!({"runtimeId": "h1"})));
    w.says(client, call("b", json!({"runtimeId": "h1", "timeout": 40_000})));
    let asked = w.take(host);
    let progress = |id: &Value, n: u64| json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id, "value": {"text": n}}});
    w.says(other, progress(&asked[0]["id"], 0));
    assert!(w.take(client).is_empty(), "only the host that was asked");
    for n in 1..=2 {
        w.after(seconds(20));
        if n == 1 {
            w.says(host, progress(&asked[0]["id"], n));
            w.says(host, progress(&asked[1]["id"], n));
            let ids: Vec<_> =
                w.take(client).iter().map(|note| note["params"]["id"].clone()).collect();
            assert_eq!(ids, ["a", "b"]);
        }
    }
    // 40 s: "b" chose its deadline; "a" has until 50 s, since progress at 20 s renewed its 30 s.
    let ended = w.take_one(client);
    assert_eq!((&ended["id"], kind(&ended)), (&json!("b"), "Timeout"));
    w.after(seconds(10));
    assert_eq!(w.take_one(client)["id"], "a");
    assert!(w.take(stranger).is_empty());
}

#[test]
fn progress_cannot_extend_for_ever() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    for _ in 0..40 {
        w.after(seconds(15));
        w.says(
            host,
            json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id, "value": 1}}),
        );
    }
    let last = w.take(client).pop().unwrap();
    assert_eq!(kind(&last), "Timeout", "10 minutes are the end");
}

#[test]
fn clients_are_no_hosts_and_hosts_no_clients() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(host, call(1, json!({})));
    assert_eq!(kind(&w.take_one(host)), "WrongRole");
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "runtime/register", "params": {}}));
    let (_, role, method) = w.calls.pop().unwrap();
    assert_eq!(
        (role, method.as_str()),
        (Role::Client, "runtime/register"),
        "the method decides by role"
    );
}

#[test]
fn own_methods_are_called_and_answered_in_kind() {
    let mut w = world();
    let client = w.bridge_client(2);
    w.says(client, json!({"id": 5, "type": "bridge/ping"}));
    let (call, ..) = w.calls.pop().unwrap();
    w.event(Event::Called { call, outcome: Ok(RawValue::from_string("{}".into()).unwrap()) });
    assert_eq!(w.take_one(client), json!({"id": 5, "success": true, "result": {}}));
}

#[test]
fn unknown_methods_and_runtimes_fail_at_once() {
    let mut w = world();
    let client = w.client(2);
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "nope"}));
    assert_eq!(kind(&w.take_one(client)), "MethodNotFound");
    let _host = w.host(1);
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "nope"}));
    assert_eq!(w.take_one(client)["error"]["message"], "Unknown request type: nope");
    w.says(client, call(1, json!({"runtimeId": "never-seen"})));
    let error = w.take_one(client);
    assert_eq!(
        (kind(&error), &error["error"]["data"]["runtimes"]),
        ("HostUnavailable", &json!(["h1"]))
    );
}

#[test]
fn hosts_may_offer_methods_of_their_own() {
    let mut w = world();
    let client = w.client(2);
    let host = w.connect(1, Role::Host, Dialect::JsonRpc);
    w.register(host, json!({"methods": ["my/\"odd\" one"]}));
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "my/\"odd\" one"}));
    assert_eq!(w.take_one(host)["method"], "my/\"odd\" one");
    w.says(client, call(2, json!({})));
    assert_eq!(kind(&w.take_one(client)), "MethodNotFound", "a host is there, but it has no chat");
}

#[test]
fn registrations_are_checked() {
    let mut w = world();
    let host = w.connect(1, Role::Host, Dialect::JsonRpc);
    for params in [
        json!({"methods": ["bridge/status"]}),
        json!({"methods": ["runtime/list"]}),
        json!({"methods": ["$/progress"]}),
        json!({"methods": [""]}),
        json!({"methods": vec!["x"; 257]}),
        json!({"methods": ["x".repeat(129)]}),
        json!({"methods": [], "runtimeId": "a b"}),
        json!({"methods": [], "workspaceFolders": vec!["x"; 65]}),
    ] {
        let parsed = serde_json::from_value(params.clone()).unwrap();
        assert!(w.broker.register(host, parsed, w.now).is_err(), "{params}");
    }
    assert!(w.broker.runtimes().is_empty());
}

#[test]
fn focus_decides_between_windows() {
    let mut w = world();
    let (first, second, client) = (w.host(1), w.host(3), w.client(2));
    let ask = |w: &mut World, n: u64| {
        w.says(client, call(n, json!({})));
        (w.take(first).len(), w.take(second).len())
    };
    assert_eq!(ask(&mut w, 1), (0, 1), "nobody had the focus: the newest");
    let focus = |w: &mut World, host, focused| {
        let params = serde_json::from_value(json!({"focused": focused})).unwrap();
        w.broker.update(host, params, w.now).unwrap();
    };
    focus(&mut w, first, true);
    assert_eq!(ask(&mut w, 2), (1, 0));
    focus(&mut w, second, true);
    assert_eq!(ask(&mut w, 3), (0, 1));
    focus(&mut w, second, false);
    assert_eq!(ask(&mut w, 4), (0, 1), "the one that had it last");
    w.says(client, call(5, json!({"runtimeId": "h1"})));
    assert_eq!(w.take(first).len(), 1, "unless one is named");
}

#[test]
fn commands_are_not_run_in_a_guessed_window() {
    let mut w = world();
    let (first, second, client) = (w.host(1), w.host(3), w.client(2));
    let command = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "execute_command", "params": params});
    w.says(client, command(json!({})));
    let error = w.take_one(client);
    assert_eq!(
        (kind(&error), &error["error"]["data"]["runtimes"]),
        ("AmbiguousRuntime", &json!(["h1", "h3"]))
    );
    w.says(client, command(json!({"runtimeId": "h1"})));
    assert_eq!((w.take(first).len(), w.take(second).len()), (1, 0));
}

#[test]
fn a_client_at_its_limit_is_not_read_until_answers_go_out() {
    let limits = Limits { client_requests: 2, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    assert_eq!(w.reading.get(&client), None);
    w.says(client, call(2, json!({})));
    assert_eq!(w.reading[&client], false);
    let asked = w.take(host);
    w.says(host, result(&asked[0]["id"], json!(1)));
    assert_eq!(w.reading[&client], true);
}

#[test]
fn large_requests_in_flight_stop_reading_too() {
    let limits = Limits { client_bytes: 1000, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (_host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({"x": "y".repeat(1000)})));
    assert_eq!(w.reading[&client], false);
}

#[test]
fn too_many_requests_in_all_are_refused_as_overload() {
    let limits = Limits { total_requests: 1, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (_host, a, b) = (w.host(1), w.client(2), w.client(3));
    w.says(a, call(1, json!({})));
    w.says(b, call(1, json!({})));
    let error = w.take_one(b);
    assert_eq!(kind(&error), "Overloaded");
    assert!(error["error"]["data"]["retryAfterMs"].is_u64());
    assert_eq!(w.broker.counters().overloaded, 1);
}

#[test]
fn a_host_that_does_not_read_makes_its_callers_wait_not_the_daemon() {
    for limits in [
        Limits { queue_messages: 4, ..Limits::default() },
        Limits { queue_bytes: 300, ..Limits::default() },
        Limits { total_bytes: 300, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let (host, client) = (w.host(1), w.client(2));
        w.fast = false;
        for n in 0..10 {
            w.says(client, call(n, json!({})));
            w.flush(client);
        }
        assert!(w.take(host).len() <= 5, "bounded");
        let refused = w.take(client);
        assert!(w.closed.is_empty(), "a client that reads does not pay for the host");
        assert!(!refused.is_empty() && refused.iter().all(|error| kind(error) == "Overloaded"));
        w.flush(host);
        w.says(client, call(99, json!({})));
        assert_eq!(w.take(host).len(), 1, "room again");
    }
}

#[test]
fn parked_requests_are_bounded_too() {
    let limits = Limits { total_bytes: 1000, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let client = w.client(2);
    for n in 0..3 {
        w.says(client, call(n, json!({"x": "y".repeat(400)})));
    }
    assert_eq!(kind(&w.take_one(client)), "Overloaded");
    w.closes(client);
    w.assert_settled();
}

#[test]
fn a_client_that_leaves_answers_unread_is_closed_and_loses_progress_first() {
    let limits = Limits { queue_messages: 4, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (host, client) = (w.host(1), w.client(2));
    for n in 0..6 {
        w.says(client, call(n, json!({})));
    }
    w.fast = false;
    let asked = w.take(host);
    for _ in 0..5 {
        w.says(host, json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": asked[0]["id"], "value": 1}}));
    }
    assert_eq!((w.take(client).len(), w.broker.counters().dropped_progress), (2, 3));
    assert_eq!(w.reading[&client], false, "half full: not read");
    for asked in &asked {
        w.says(host, result(&asked["id"], json!(1)));
    }
    assert_eq!(w.closed, [(client, CloseReason::SlowConsumer)]);
    w.closes(client);
    w.closes(host);
    w.assert_settled();
}

#[test]
fn one_bad_message_is_answered_and_many_in_a_row_end_the_connection() {
    let mut w = world();
    let (client, bridge) = (w.client(2), w.bridge_client(3));
    w.says_text(bridge, "{oops");
    assert_eq!(w.take_one(bridge)["error"], "Invalid JSON");
    for _ in 0..100 {
        w.says_text(client, "{oops");
    }
    assert!(w.closed.is_empty());
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "nope"}));
    for _ in 0..101 {
        w.says_text(client, "{oops");
    }
    assert_eq!(w.closed, [(client, CloseReason::Violations)]);
    assert!(w.take(client).iter().all(|answer| answer["error"].is_object()));
}

#[test]
fn nan_is_answered_under_its_id() {
    let mut w = world();
    let client = w.bridge_client(2);
    w.says_text(client, r#"{"id":5,"type":"vscode/chat","params":{"message":NaN}}"#);
    let answer = w.take_one(client);
    assert_eq!(answer["id"], 5);
    assert!(answer["error"].as_str().unwrap().contains("NaN"));
}

#[test]
fn draining_fails_what_is_in_flight_and_closes_everybody() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.take(host);
    w.event(Event::Drain);
    assert_eq!(kind(&w.take_one(client)), "ShuttingDown");
    assert_eq!(w.take(host).len(), 1, "a cancel");
    assert_eq!(w.closed, [(host, CloseReason::Ending), (client, CloseReason::Ending)]);
    w.says(client, call(2, json!({})));
    assert!(w.take(host).is_empty() && w.take(client).is_empty(), "nobody listens any more");
}

#[test]
fn tails_hear_of_each_request_without_its_content() {
    let mut w = world();
    let (host, client, tail) = (w.host(1), w.client(2), w.client(3));
    w.broker.set_name(client, "script\u{1b}[31m");
    w.broker.tail(tail);
    w.says(client, call(1, json!({"message": "secret"})));
    w.now += Duration::from_millis(5);
    let id = w.take_one(host)["id"].clone();
    w.says(host, result(&id, json!("also secret")));
    let record = w.take_one(tail);
    assert_eq!(record["method"], "bridge/request");
    assert_eq!(record["params"]["outcome"], "ok");
    assert_eq!(record["params"]["hostMs"], 5.0);
    assert_eq!(record["params"]["clientName"], "script[31m");
    assert!(!record.to_string().contains("secret"));
}

fn started(id: u64, token: &str) -> Value {
    json!({"type": "dapEvent", "event": "asyncOperationStarted",
           "body": {"operationId": id, "resumeToken": token, "timeoutMs": 300_000}})
}

fn submit(id: &str, token: &str, client: Option<u64>) -> Value {
    json!({"jsonrpc": "2.0", "method": "dapEvent", "params": {"event": "asyncOperationSubmit", "client": client,
           "body": {"operationId": id, "resumeToken": token, "result": 1}}})
}

#[test]
fn operations_are_announced_once_and_submitted_to_their_owner() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.bridge_client(2), w.bridge_client(3));
    w.says(a, started(7, "t7"));
    w.says(a, started(7, "t7"));
    w.says(b, started(8, "t8"));
    let announced = w.take(host);
    assert_eq!(announced.len(), 2);
    assert_eq!(announced[0]["params"]["client"], 2);
    w.says(host, submit("7", "t7", Some(2)));
    assert_eq!(w.take_one(a)["body"]["result"], 1);
    w.says(host, submit("8", "t8", None));
    assert_eq!(w.take_one(b)["event"], "asyncOperationSubmit");
    w.says(a, started(7, "t7"));
    w.says(host, submit("7", "t7", Some(2)));
    assert!(w.take(host).is_empty() && w.take(a).is_empty() && w.take(b).is_empty());
}

#[test]
fn events_are_held_back_while_a_bridge_request_is_outstanding() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    w.says(client, bridge_call(1, json!({})));
    let asked = w.take(host)[1]["id"].clone();
    w.says(host, submit("7", "t7", Some(2)));
    assert!(w.take(client).is_empty());
    w.says(host, result(&asked, json!({})));
    let got = w.take(client);
    assert_eq!(
        (&got[0]["success"], &got[1]["event"]),
        (&json!(true), &json!("asyncOperationSubmit"))
    );
}

#[test]
fn a_host_that_comes_later_is_told_of_pending_operations() {
    let mut w = world();
    let client = w.bridge_client(2);
    w.says(client, started(7, "t7"));
    w.says(client, started(8, "t8"));
    let host = w.host(1);
    let ids: Vec<_> =
        w.take(host).iter().map(|event| event["params"]["body"]["operationId"].clone()).collect();
    assert_eq!(ids, [7, 8]);
}

#[test]
fn operations_end_with_their_time_and_with_their_connection() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    w.says(client, started(8, "t8"));
    w.take(host);
    w.after(seconds(299));
    w.says(client, started(9, "t9"));
    w.take(host);
    w.after(seconds(1));
    let ended = w.take(host);
    assert_eq!(ended.len(), 2);
    assert_eq!(ended[0]["params"]["body"]["status"], "cancelled");
    assert_eq!(w.broker.operations(), 1);
    w.closes(client);
    assert_eq!(
        w.take_one(host)["params"]["body"],
        json!({"operationId": "9", "status": "cancelled"})
    );
    w.closes(host);
    w.assert_settled();
}

#[test]
fn a_submit_from_outside_finishes_an_operation_once() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.bridge_client(2), w.bridge_client(3));
    w.says(a, started(7, "t7"));
    w.says(a, started(8, "twice"));
    w.says(b, started(8, "twice"));
    w.take(host);
    let value = RawValue::from_string("1e400".into()).unwrap();
    assert_eq!(w.broker.submit("t7", &value), Ok("7".into()));
    let effects = w.broker.take_effects();
    let [Effect::Send { peer, text }, Effect::Send { peer: told, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((*peer, *told), (a, host));
    assert!(text.contains(r#""result":1e400"#), "{text}");
    assert_eq!(w.broker.submit("t7", &value), Err(SubmitError::Finished));
    assert_eq!(w.broker.submit("none", &value), Err(SubmitError::Unknown));
    assert_eq!(w.broker.submit("twice", &value), Err(SubmitError::Ambiguous));
}

#[test]
fn operations_are_bounded() {
    for limits in [
        Limits { operations: 2, ..Limits::default() },
        Limits { operation_bytes: 150, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let client = w.bridge_client(2);
        for n in 0..5 {
            w.says(client, started(n, &format!("t{n}")));
        }
        assert_eq!(w.broker.operations(), 2);
    }
}
