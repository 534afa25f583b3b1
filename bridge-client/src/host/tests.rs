//! The host against a scripted daemon, with a stopped clock.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::test_daemon::{Side, TestDaemon, address, unreachable, within};

fn registration() -> RegisterParams {
    RegisterParams { methods: vec!["vscode/chat".into()], ..RegisterParams::default() }
}

/// Attaches a host that the daemon calls `w1`.
async fn attached() -> (Host, TestDaemon, Side) {
    let (dial, mut daemon) = TestDaemon::new();
    let attaching = tokio::spawn(Host::dial(dial, registration(), Options::default()));
    let mut side = daemon.accept().await;
    let params = registered(&mut side).await;
    assert_eq!(params["methods"], json!(["vscode/chat"]));
    let host = within("the host", attaching).await.unwrap().unwrap();
    (host, daemon, side)
}

/// Answers a registration and returns its params.
async fn registered(side: &mut Side) -> Value {
    let (id, params) = side.request("runtime/register").await;
    side.answer(id, json!({"runtimeId": "w1"})).await;
    params
}

async fn serving<F, Fut>(handler: F) -> (JoinHandle<Result<(), Error>>, TestDaemon, Side)
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, WireError>> + Send + 'static,
{
    let (host, daemon, side) = attached().await;
    assert_eq!(host.runtime_id(), "w1");
    (tokio::spawn(host.serve(handler)), daemon, side)
}

async fn ask(side: &mut Side, id: u64, params: Value) {
    side.send(json!({"jsonrpc": "2.0", "id": id, "method": "vscode/chat", "params": params})).await;
}

async fn cancel(side: &mut Side, id: u64) {
    let params = json!({"id": id});
    side.send(json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})).await;
}

#[tokio::test(start_paused = true)]
async fn requests_are_served_side_by_side() {
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let (_serving, _daemon, mut side) = serving(move |request| {
        let release = Arc::clone(&release);
        async move {
            let params: Value = request.params_as()?;
            if params["wait"] == true {
                release.notified().await;
            }
            Ok(json!({"echo": params}))
        }
    })
    .await;
    ask(&mut side, 1, json!({"wait": true})).await;
    ask(&mut side, 2, json!({"n": 2})).await;
    assert_eq!(side.receive().await["id"], 2);
    released.notify_one();
    let answer = side.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["echo"]["wait"]), (&json!(1), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn progress_is_sent_while_the_handler_works_and_before_its_answer() {
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let (_serving, _daemon, mut side) = serving(move |request| {
        let release = Arc::clone(&release);
        async move {
            request.progress(&json!({"text": "a"})).await?;
            release.notified().await;
            for n in 0..500 {
                request.progress(&n).await?;
            }
            Ok(json!("done"))
        }
    })
    .await;
    ask(&mut side, 1, json!({})).await;
    assert_eq!(side.receive().await["params"], json!({"id": 1, "value": {"text": "a"}}));
    released.notify_one();
    for n in 0..500 {
        assert_eq!(side.receive().await["params"]["value"], n);
    }
    assert_eq!(side.receive().await["result"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_handler_learns_of_a_cancel_and_still_answers() {
    let (_serving, _daemon, mut side) = serving(async |request: Request| {
        request.cancelled().await;
        match request.is_cancelled() {
            true => Err(ErrorKind::RequestCancelled.error("cancelled")),
            false => Ok(json!("not cancelled")),
        }
    })
    .await;
    ask(&mut side, 1, json!({})).await;
    ask(&mut side, 2, json!({})).await;
    cancel(&mut side, 2).await;
    let answer = side.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32800)));
    cancel(&mut side, 1).await;
    assert_eq!(side.receive().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_fails_its_own_request_only() {
    let (_serving, _daemon, mut side) = serving(async |request: Request| {
        let params: Value = request.params_as()?;
        assert!(params["panic"] != true, "on purpose");
        Ok(json!(1))
    })
    .await;
    ask(&mut side, 1, json!({"panic": true})).await;
    assert_eq!(side.receive().await["error"]["code"], -32603);
    ask(&mut side, 2, json!({})).await;
    assert_eq!(side.receive().await["result"], 1);
    ask(&mut side, 3, json!([])).await;
    assert_eq!(side.receive().await["result"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_big_fails_its_own_request_only() {
    let (host, _daemon, mut side) = attached().await;
    tokio::spawn(host.serve(async |request: Request| {
        if request.params_as::<Value>()?["big"] == true {
            let large =
                RawValue::from_string(format!("\"{}\"", "x".repeat(MESSAGE_BYTES))).unwrap();
            request.progress(&large).await?;
            return Ok(large);
        }
        Ok(RawValue::NULL.to_owned())
    }));
    ask(&mut side, 1, json!({"big": true})).await;
    assert_eq!(side.receive().await["error"]["code"], -32008);
    ask(&mut side, 2, json!({})).await;
    assert_eq!(side.receive().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn raw_results_are_sent_as_they_are() {
    let (host, _daemon, mut side) = attached().await;
    tokio::spawn(host.serve(async |request: Request| Ok(request.params)));
    let params = r#"{ "n": 1e400 }"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"vscode/chat","params":{params}}}"#);
    side.send_text(text).await;
    let answer = side.receive_text().await;
    assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{params}}}"#));
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_the_host_registers_again_and_old_answers_go_nowhere() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (cancelled, ended) = (Arc::clone(&seen), Arc::new(Notify::new()));
    let told = Arc::clone(&ended);
    let (_serving, mut daemon, mut side) = serving(move |request| {
        let (cancelled, ended) = (Arc::clone(&cancelled), Arc::clone(&ended));
        async move {
            let params: Value = request.params_as()?;
            if params["wait"] == true {
                request.cancelled().await;
                cancelled.lock().unwrap().push(request.id().map(str::to_owned));
                ended.notify_one();
            }
            Ok(params)
        }
    })
    .await;
    ask(&mut side, 5, json!({"wait": true})).await;
    // An answered request shows that the one before has reached its handler.
    ask(&mut side, 6, json!({})).await;
    assert_eq!(side.receive().await["id"], 6);
    drop(side);
    within("the cancel", told.notified()).await;

    let mut side = daemon.accept().await;
    assert_eq!(registered(&mut side).await["runtimeId"], "w1");
    // The same id on the new connection is another request, and gets its own answer only.
    ask(&mut side, 5, json!({"new": true})).await;
    let answer = side.receive().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(5), &json!({"new": true})));
    assert_eq!(*seen.lock().unwrap(), [Some("5".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_ends_the_host_and_other_ends_are_errors() {
    let (serving_host, _daemon, side) = serving(async |_| Ok(json!(1))).await;
    side.close(1001).await;
    within("the end", serving_host).await.unwrap().unwrap();

    let (serving_host, _daemon, side) = serving(async |_| Ok(json!(1))).await;
    side.close(4409).await;
    let error = within("the end", serving_host).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Replaced(_)), "{error}");

    let (serving_host, daemon, side) = serving(async |_| Ok(json!(1))).await;
    daemon.refuse([Error::Unauthorized { address: address() }]);
    drop(side);
    let error = within("the end", serving_host).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");

    let (serving_host, daemon, side) = serving(async |_| Ok(json!(1))).await;
    daemon.refuse(std::iter::repeat_with(unreachable).take(1000));
    let start = Instant::now();
    drop(side);
    let error = within("the end", serving_host).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let expected = Duration::from_secs(3)..=Options::default().reconnect_for;
    assert!(expected.contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refused_registration_is_an_error() {
    let (dial, mut daemon) = TestDaemon::new();
    let attaching = tokio::spawn(Host::dial(dial, registration(), Options::default()));
    let mut side = daemon.accept().await;
    let (id, _) = side.request("runtime/register").await;
    let error = ErrorKind::WrongRole.error("only a host may register: show the host token");
    side.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    let error = within("the refusal", attaching).await.unwrap().err().unwrap();
    assert!(error.is(ErrorKind::WrongRole), "{error}");
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_and_remembered() {
    let (host, mut daemon, mut side) = attached().await;
    let handle = host.handle();
    tokio::spawn(host.serve(async |_| Ok(json!(1))));
    handle.update(UpdateParams { focused: Some(true), ..UpdateParams::default() });
    assert_eq!(side.request("runtime/update").await.1, json!({"focused": true}));
    daemon.refuse([unreachable(), unreachable()]);
    drop(side);
    let mut side = daemon.accept().await;
    assert_eq!(daemon.dials(), 1 + 3);
    let params = registered(&mut side).await;
    assert_eq!((&params["focused"], &params["methods"]), (&json!(true), &json!(["vscode/chat"])));
    handle.notify("dapEvent", &json!({"event": "asyncOperationSubmit", "client": 3})).unwrap();
    assert_eq!(side.receive().await["params"]["client"], 3);
}

#[tokio::test(start_paused = true)]
async fn events_reach_the_handler_and_get_no_answer() {
    let (seen_in, mut seen) = mpsc::unbounded_channel();
    let (_serving, _daemon, mut side) = serving(move |request| {
        seen_in
            .send((request.method.clone(), request.id().is_some(), request.params_as()))
            .unwrap();
        async { Ok(json!("answer")) }
    })
    .await;
    let params = json!({"event": "started", "body": [1], "client": 4});
    side.send(json!({"jsonrpc": "2.0", "method": "dapEvent", "params": &params})).await;
    let (method, has_id, received) = within("the event", seen.recv()).await.unwrap();
    assert_eq!((&*method, has_id, received), ("dapEvent", false, Ok(params)));
    ask(&mut side, 1, json!({})).await;
    assert_eq!(side.receive().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_while_a_handler_works() {
    let (_serving, _daemon, mut side) = serving(async |request: Request| {
        request.cancelled().await;
        Ok(json!(1))
    })
    .await;
    ask(&mut side, 1, json!({})).await;
    side.ping().await;
}

/// A host at one end of a socket pair, as a daemon starts it, and the daemon's end.
async fn over_a_pair() -> (Host, Side) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let attaching = tokio::spawn(Host::over(ours, registration(), Options::default()));
    let mut side = Side::over(theirs).await;
    registered(&mut side).await;
    (within("the host", attaching).await.unwrap().unwrap(), side)
}

#[tokio::test(start_paused = true)]
async fn a_host_over_a_stream_registers_without_a_handshake_and_serves() {
    let (host, mut side) = over_a_pair().await;
    let serving = tokio::spawn(host.serve(|request| async move { request.params_as::<Value>() }));
    ask(&mut side, 5, json!({"n": 1})).await;
    assert_eq!(side.receive().await["result"], json!({"n": 1}));
    side.close(1001).await;
    within("the end", serving).await.unwrap().expect("a goodbye is no failure");
}

#[tokio::test(start_paused = true)]
async fn a_host_over_a_stream_ends_at_once_when_the_stream_does() {
    let (host, side) = over_a_pair().await;
    let serving = tokio::spawn(host.serve(|_| async { Ok(Value::Null) }));
    let begun = Instant::now();
    drop(side);
    let lost = within("the end", serving).await.unwrap().unwrap_err();
    assert!(matches!(lost, Error::Lost { .. }), "{lost:?}");
    assert_eq!(begun.elapsed(), Duration::ZERO, "there is nobody to dial");
}

#[tokio::test(start_paused = true)]
async fn a_handler_learns_who_no_longer_wants_its_answer() {
    let (reasons, mut seen) = mpsc::unbounded_channel();
    let (_serving, _daemon, mut side) = serving(move |request| {
        let reasons = reasons.clone();
        async move {
            reasons.send(request.cancelled().await).unwrap();
            Ok(Value::Null)
        }
    })
    .await;
    for (reason, expected) in [
        ("RequestCancelled", Cancel::Requested),
        ("Timeout", Cancel::Abandoned),
        ("CallerGone", Cancel::Abandoned),
    ] {
        ask(&mut side, 7, json!({})).await;
        let params = json!({"id": 7, "reason": reason});
        side.send(json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})).await;
        assert_eq!(within("the cancel", seen.recv()).await, Some(expected), "{reason}");
        side.receive().await;
    }
}
