//! The client against a scripted daemon, with a stopped clock.

use bridge_protocol::methods::{Chat, ChatParams, GetChatHistory, GetChatHistoryParams};
use bridge_protocol::{ErrorKind, WireError};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::test_daemon::{Side, TestDaemon, address, unreachable, within};

async fn connected() -> (Client, TestDaemon, Side) {
    connected_with(Options::default()).await
}

async fn connected_with(options: Options) -> (Client, TestDaemon, Side) {
    let (dial, mut daemon) = TestDaemon::new();
    let client = Client::dial(dial, options).await.unwrap();
    let side = daemon.accept().await;
    (client, daemon, side)
}

fn question(message: &str) -> ChatParams {
    ChatParams { message: message.into(), ..ChatParams::default() }
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    Some(RawValue::from_string(text.to_owned()).unwrap())
}

async fn next_notice(notices: &mut broadcast::Receiver<Notice>) -> Notice {
    within("a notice", notices.recv()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn many_calls_share_a_connection_and_may_be_answered_in_any_order() {
    let (client, _daemon, mut side) = connected().await;
    let calls: Vec<_> =
        (0..100).map(|n| client.call::<Chat>(&question(&n.to_string()), None)).collect();
    let mut requests = Vec::new();
    for _ in 0..100 {
        requests.push(side.request("vscode/chat").await);
    }
    for (id, params) in requests.into_iter().rev() {
        side.answer(id, json!({"response": params["message"]})).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().response, n.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn raw_calls_pass_params_and_result_byte_for_byte() {
    let (client, _daemon, mut side) = connected().await;
    let params = r#"{ "n": 1e400, "t": 1.0, "s": "\u0031" }"#;
    let call = client.call_raw("my/method", raw(params), None);
    let text = side.receive_text().await;
    assert!(text.ends_with(&format!("\"params\":{params}}}")), "{text}");
    let result = r#"[ 12345678901234567890, 1e400 ]"#;
    side.send_text(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).await;
    assert_eq!(call.await.unwrap().get(), result);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_travels_in_the_params() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call::<Chat>(&question("x"), Some(Duration::from_millis(2500)));
    let (id, params) = side.request("vscode/chat").await;
    assert_eq!(params["timeout"], 2500);
    side.answer(id, json!({"response": ""})).await;
    call.await.unwrap();
    let _call = client.call::<Chat>(&question("x"), None);
    assert_eq!(side.request("vscode/chat").await.1["timeout"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn progress_comes_before_the_answer() {
    let (client, _daemon, mut side) = connected().await;
    let mut call = client.call::<Chat>(&question("x"), None);
    let (id, _) = side.request("vscode/chat").await;
    side.progress(id, json!({"text": "2, "})).await;
    // The daemon has not answered, yet the first piece is here.
    let piece = within("progress", call.progress()).await.unwrap();
    assert_eq!(piece.get(), r#"{"text":"2, "}"#);
    side.progress(id, json!({"text": "3"})).await;
    side.answer(id, json!({"response": "2, 3"})).await;
    assert_eq!(call.progress().await.unwrap().get(), r#"{"text":"3"}"#);
    assert!(call.progress().await.is_none());
    assert_eq!(call.await.unwrap().response, "2, 3");
}

#[tokio::test(start_paused = true)]
async fn progress_that_nobody_reads_holds_up_nothing() {
    let (client, _daemon, mut side) = connected().await;
    let unread = client.call::<Chat>(&question("unread"), None);
    let (id, _) = side.request("vscode/chat").await;
    for n in 0..5_000 {
        side.progress(id, json!(n)).await;
    }
    let other = client.call::<GetChatHistory>(&GetChatHistoryParams::default(), None);
    let (other_id, _) = side.request("vscode/getChatHistory").await;
    side.answer(other_id, json!({"messages": []})).await;
    assert!(other.await.unwrap().messages.is_empty());
    side.answer(id, json!({"response": "whole"})).await;
    assert_eq!(unread.await.unwrap().response, "whole");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call::<Chat>(&question("x"), None);
    let (id, _) = side.request("vscode/chat").await;
    drop(call);
    side.cancel(id).await;
    // Its late answer finds nobody, and the connection goes on.
    side.answer(id, json!({"response": "late"})).await;
    let next = client.call::<Chat>(&question("y"), None);
    let (next_id, _) = side.request("vscode/chat").await;
    assert_ne!(next_id, id);
    side.answer(next_id, json!({"response": "y"})).await;
    assert_eq!(next.await.unwrap().response, "y");
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_is_not_cancelled() {
    let (client, _daemon, mut side) = connected().await;
    for _ in 0..2 {
        let call = client.call::<Chat>(&question("x"), None);
        // The second round would see a cancel here, had the first sent one.
        let (id, _) = side.request("vscode/chat").await;
        side.answer(id, json!({"response": "a"})).await;
        call.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_explicit_cancel_still_gets_its_one_answer() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call::<Chat>(&question("x"), None);
    let (id, _) = side.request("vscode/chat").await;
    let canceller = call.canceller();
    canceller.cancel();
    side.cancel(id).await;
    let error = json!({"code": -32800, "message": "cancelled"});
    side.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    assert!(call.await.unwrap_err().is(ErrorKind::RequestCancelled));
}

#[tokio::test(start_paused = true)]
async fn errors_keep_code_message_and_data() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call::<Chat>(&question("x"), None);
    let (id, _) = side.request("vscode/chat").await;
    let error = json!({"code": 17, "message": "no coffee", "data": {"cups": 0}});
    side.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    let error = call.await.unwrap_err();
    assert_eq!(error.to_string(), "no coffee");
    let wire: &WireError = error.wire().unwrap();
    assert_eq!((wire.code(), wire.data().unwrap().get()), (17, r#"{"cups":0}"#));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_wrong_shape_is_told_apart() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call::<Chat>(&question("x"), None);
    let (id, _) = side.request("vscode/chat").await;
    side.answer(id, json!({"response": 4})).await;
    assert!(matches!(call.await, Err(Error::BadAnswer { .. })));
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_call_gives_up_a_second_after_its_deadline() {
    let (client, _daemon, mut side) = connected().await;
    let start = Instant::now();
    let call = client.call::<Chat>(&question("x"), seconds(5));
    let (id, _) = side.request("vscode/chat").await;
    let error = within("the timeout", call.into_future()).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert_eq!(start.elapsed().as_secs(), 6);
    side.cancel(id).await;
}

#[tokio::test(start_paused = true)]
async fn no_timeout_is_too_long() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call_raw("my/method", None, Some(Duration::MAX));
    let (id, params) = side.request("my/method").await;
    assert!(params["timeout"].as_f64().unwrap() > 1e15, "{params}");
    side.answer(id, json!(1)).await;
    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn progress_renews_a_default_deadline_but_not_a_chosen_one() {
    let (client, _daemon, mut side) = connected().await;
    for (timeout, expected) in [(None, 20 + 30 + 1), (seconds(25), 25 + 1)] {
        let start = Instant::now();
        let call = client.call::<Chat>(&question("x"), timeout);
        let (id, _) = side.request("vscode/chat").await;
        let waiting = tokio::spawn(call.into_future());
        tokio::time::sleep(Duration::from_secs(20)).await;
        side.progress(id, json!(1)).await;
        let error = within("the timeout", waiting).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert_eq!(start.elapsed().as_secs(), expected);
        side.cancel(id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_fails_calls_at_once_and_repeats_nothing() {
    let (client, mut daemon, mut side) = connected().await;
    let start = Instant::now();
    let calls: Vec<_> = (0..3).map(|_| client.call::<Chat>(&question("old"), None)).collect();
    for _ in 0..3 {
        side.request("vscode/chat").await;
    }
    drop(side);
    for call in calls {
        let error = call.await.unwrap_err();
        assert!(matches!(error, Error::Lost { .. }), "{error}");
        assert!(error.may_have_executed());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);

    let call = client.call::<Chat>(&question("new"), None);
    let mut side = daemon.accept().await;
    let (id, params) = side.request("vscode/chat").await;
    assert_eq!((id, &params["message"]), (4, &json!("new")));
    side.answer(id, json!({"response": "back"})).await;
    assert_eq!(call.await.unwrap().response, "back");
    assert_eq!(daemon.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_dials_until_the_daemon_is_back() {
    let (client, mut daemon, side) = connected().await;
    let mut notices = client.notices();
    drop(side);
    assert!(matches!(next_notice(&mut notices).await, Notice::Disconnected(_)));
    daemon.refuse([unreachable(), unreachable(), unreachable()]);
    let start = Instant::now();
    let call = client.call::<Chat>(&question("x"), seconds(10));
    let mut side = daemon.accept().await;
    assert_eq!(daemon.dials(), 1 + 4);
    assert_eq!(start.elapsed().as_millis(), 25 + 50 + 100);
    let (id, _) = side.request("vscode/chat").await;
    side.answer(id, json!({"response": "back"})).await;
    assert_eq!(call.await.unwrap().response, "back");
}

#[tokio::test(start_paused = true)]
async fn dialling_ends_with_its_window_or_with_the_calls_own_deadline() {
    let (client, daemon, side) = connected().await;
    let mut notices = client.notices();
    drop(side);
    next_notice(&mut notices).await;
    daemon.refuse(std::iter::repeat_with(unreachable).take(1000));
    let start = Instant::now();
    let impatient = client.call::<Chat>(&question("x"), seconds(1));
    let patient = client.call::<Chat>(&question("x"), seconds(60));
    let error = impatient.await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(start.elapsed().as_secs(), 1);
    let error = patient.await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(start.elapsed() <= Options::default().reconnect_for, "{:?}", start.elapsed());
    assert!(start.elapsed() > Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(!error.may_have_executed());
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_ends_the_dialling_at_once() {
    let (client, daemon, side) = connected().await;
    let mut notices = client.notices();
    drop(side);
    next_notice(&mut notices).await;
    daemon.refuse([Error::Unauthorized { address: address() }]);
    let error = client.call::<Chat>(&question("x"), None).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
    assert_eq!(daemon.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_said_goodbye_is_dialled_once() {
    let (client, daemon, side) = connected().await;
    let mut notices = client.notices();
    side.close(1001).await;
    match next_notice(&mut notices).await {
        Notice::Disconnected(error) => assert!(error.is_goodbye(), "{error}"),
        other => panic!("{other:?}"),
    }
    daemon.refuse([unreachable(), unreachable()]);
    let start = Instant::now();
    let error = client.call::<Chat>(&question("x"), None).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!((daemon.dials(), start.elapsed()), (2, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_dropped_while_dialling_is_never_sent() {
    let (client, mut daemon, side) = connected().await;
    let mut notices = client.notices();
    drop(side);
    next_notice(&mut notices).await;
    daemon.refuse([unreachable()]);
    let kept = client.call::<Chat>(&question("kept"), None);
    let dropped = client.call::<Chat>(&question("dropped"), None);
    drop(dropped);
    let mut side = daemon.accept().await;
    let (id, params) = side.request("vscode/chat").await;
    assert_eq!(params["message"], "kept");
    side.answer(id, json!({"response": ""})).await;
    kept.await.unwrap();
    let _next = client.call::<Chat>(&question("next"), None);
    assert_eq!(side.request("vscode/chat").await.1["message"], "next");
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_without_any_call() {
    let (_client, _daemon, mut side) = connected().await;
    side.ping().await;
    side.ping().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_sends_before_it_reads_locks_nobody_up() {
    let (client, _daemon, mut side) = connected().await;
    let mut notices = client.notices();
    // Both are far larger than the pipe between them.
    let large = "x".repeat(256 * 1024);
    let call = client.call::<Chat>(&question(&large), None);
    side.send(json!({"jsonrpc": "2.0", "method": "bridge/request", "params": [&large]})).await;
    assert!(matches!(next_notice(&mut notices).await, Notice::Notification { .. }));
    let (id, params) = side.request("vscode/chat").await;
    assert_eq!(params["message"], *large);
    side.answer(id, json!({"response": ""})).await;
    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_name_is_introduced_on_every_connection() {
    let options = Options { name: "orders".into(), ..Options::default() };
    let (client, mut daemon, mut side) = connected_with(options).await;
    let mut notices = client.notices();
    assert_eq!(side.request("bridge/hello").await.1, json!({"protocol": 1, "name": "orders"}));
    drop(side);
    next_notice(&mut notices).await;
    let _call = client.call::<Chat>(&question("x"), None);
    let mut side = daemon.accept().await;
    side.request("bridge/hello").await;
    side.request("vscode/chat").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_common_version_calls_fail_and_say_so() {
    let options = Options { name: "orders".into(), ..Options::default() };
    let (client, _daemon, mut side) = connected_with(options).await;
    let call = client.call::<Chat>(&question("x"), None);
    let (id, _) = side.request("bridge/hello").await;
    let error = ErrorKind::VersionMismatch.error("this daemon speaks version 2: update the client");
    side.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    assert!(call.await.unwrap_err().is(ErrorKind::VersionMismatch));
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_bounded_and_room_is_given_back() {
    let (client, _daemon, mut side) = connected().await;
    let mut calls: Vec<_> =
        (0..CALLS_IN_FLIGHT).map(|_| client.call_raw("my/method", None, None)).collect();
    let refused = client.call_raw("my/method", None, None).await.unwrap_err();
    assert!(matches!(refused, Error::TooManyCalls), "{refused}");
    let (id, _) = side.request("my/method").await;
    side.answer(id, json!(1)).await;
    calls.remove(0).await.unwrap();
    let _again = client.call_raw("my/other", None, None);
    for _ in 1..CALLS_IN_FLIGHT {
        side.request("my/method").await;
    }
    side.request("my/other").await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_fails_alone_and_at_once() {
    let (client, _daemon, mut side) = connected().await;
    let start = Instant::now();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let error = client.call_raw("my/method", raw(&deep), None).await.unwrap_err();
    assert!(error.is(ErrorKind::ParseError), "{error}");
    let large = format!("\"{}\"", "x".repeat(MESSAGE_BYTES - 20));
    let error = client.call_raw("m", raw(&format!("[{large}]")), None).await.unwrap_err();
    assert!(matches!(error, Error::TooBig { .. }), "{error}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    let call = client.call_raw("my/method", None, None);
    let (id, _) = side.request("my/method").await;
    side.answer(id, json!(1)).await;
    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_to_a_client_are_refused_and_nonsense_is_ignored() {
    let (_client, _daemon, mut side) = connected().await;
    for nonsense in ["", "{", "[]", r#"{"jsonrpc":"2.0","id":99,"result":1}"#] {
        side.send_text(nonsense.to_owned()).await;
    }
    side.send(json!({"jsonrpc": "2.0", "id": 7, "method": "vscode/chat"})).await;
    let answer = side.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
}

#[tokio::test(start_paused = true)]
async fn events_and_notifications_go_both_ways() {
    let (client, _daemon, mut side) = connected().await;
    let mut notices = client.notices();
    let large = raw(&format!("\"{}\"", "x".repeat(MESSAGE_BYTES)));
    assert!(matches!(client.notify("dapEvent", &large), Err(Error::TooBig { .. })));
    client.notify("dapEvent", &json!({"event": "asyncOperationStarted", "body": {}})).unwrap();
    assert_eq!(side.receive().await["params"]["event"], "asyncOperationStarted");
    let params = json!({"event": "asyncOperationSubmit", "body": {"result": 1}});
    side.send(json!({"jsonrpc": "2.0", "method": "dapEvent", "params": params})).await;
    match next_notice(&mut notices).await {
        Notice::DapEvent { name, body } => {
            assert_eq!(name, "asyncOperationSubmit");
            assert_eq!(body.unwrap().get(), r#"{"result":1}"#);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn closing_says_goodbye_and_ends_what_waits() {
    let (client, _daemon, mut side) = connected().await;
    let call = client.call::<Chat>(&question("x"), None);
    side.request("vscode/chat").await;
    let other = client.clone();
    let closing = tokio::spawn(client.close());
    side.closed().await;
    closing.await.unwrap();
    assert!(matches!(call.await, Err(Error::Closed)));
    assert!(matches!(other.call_raw("m", None, None).await, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_daemon_that_does_not_read() {
    let (client, _daemon, _side) = connected().await;
    let large = raw(&format!("[\"{}\"]", "x".repeat(2 * 1024 * 1024)));
    let call = client.call_raw("my/method", large, None);
    let start = Instant::now();
    within("the end", client.close()).await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(matches!(call.await, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn the_connection_ends_with_the_last_handle() {
    let (client, _daemon, mut side) = connected().await;
    drop(client);
    side.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_over_a_stream_says_what_it_prefers_and_cannot_connect_again() {
    let (ours, theirs) = tokio::io::duplex(4096);
    let options = Options { path: Some("/w".into()), ..Options::default() };
    let client = Client::over(ours, options).await;
    let mut side = Side::over(theirs).await;
    let (id, params) = side.request("bridge/hello").await;
    assert_eq!(params, serde_json::json!({"protocol": 1, "name": "", "path": "/w"}));
    side.answer(id, serde_json::json!({})).await;
    let call = client.call_raw("bridge/ping", None, None);
    let (id, _) = side.request("bridge/ping").await;
    side.answer(id, serde_json::json!({})).await;
    within("the answer", call.answer()).await.unwrap();
    drop(side);
    let refused =
        within("the end", client.call_raw("bridge/ping", None, None).answer()).await.unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused:?}");
}
