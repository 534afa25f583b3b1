//! Tests the tool calls of a command tracker, with fake tools.

use std::sync::Arc;
use std::time::Duration;

use bridge_protocol::ErrorKind;
use bridge_protocol::WireError;
use bridge_protocol::methods::shell::{Create, Input, Keys, Read, Run as RunTool, Wait};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::action::{Cancellation, OutputPiece, RunIn};
use crate::tools::FakeTools;

const LIMITS: WaitLimits = WaitLimits { quiet: Duration::from_secs(10), limit: None };

struct Fixture {
    tools: FakeTools,
    tracker: CommandTracker<FakeTools>,
    cancellation: Arc<Cancellation>,
}

impl Fixture {
    /// With a new shell.
    async fn open() -> Self {
        let tools = FakeTools::default();
        let shell = ShellName("agent".to_owned());
        let tracker = CommandTracker::new(tools.clone(), shell, Grammar::in_process("bash"));
        let mut fixture = Self { tools, tracker, cancellation: Arc::default() };
        fixture.expect_creation();
        fixture.tracker.open().await.unwrap();
        fixture.tools.calls();
        fixture
    }

    fn expect_creation(&self) {
        self.tools.expect::<Create>(json!({
            "shell": "agent", "state": "idle", "cwd": "/work", "pid": 1, "columns": 1000,
            "rows": 200, "restarts": 0, "logEnd": 0,
        }));
        self.tools.expect_failure::<Wait>(failure(ErrorKind::NotFound, "noSuchCommand"));
    }

    async fn run(&mut self, command: &str) -> Result<RunObservation, ActionError> {
        self.act(&run(command), None).await
    }

    async fn input(&mut self, text: &str) -> Result<RunObservation, ActionError> {
        self.act(&Run { input: true, ..run(text) }, None).await
    }

    async fn act(
        &mut self,
        run: &Run,
        output: Option<&mpsc::Sender<OutputPiece>>,
    ) -> Result<RunObservation, ActionError> {
        let watch = Watch { output, cancellation: &self.cancellation };
        self.tracker.run(run, LIMITS, watch).await
    }
}

fn run(command: &str) -> Run {
    let command = command.to_owned();
    Run { command, input: false, blocking: false, shell: RunIn::Main, hidden: false }
}

fn failure(kind: ErrorKind, reason: &str) -> WireError {
    kind.error_with(reason, Map::from_iter([("reason".to_owned(), json!(reason))]))
}

fn output(text: &str, start: u64, end: u64) -> Value {
    json!({"text": text, "start": start, "end": end})
}

fn running(number: u64, output: Value) -> Value {
    json!({"shell": "agent", "command": number, "state": "running", "output": output, "why": "quiet"})
}

fn finished(number: u64, output: Value) -> Value {
    json!({
        "shell": "agent", "command": number, "state": "finished", "output": output, "exitCode": 0,
        "ended": "atPrompt", "cwd": "/work", "durationMs": 1.0, "user": "u", "machine": "m",
    })
}

#[tokio::test]
async fn a_command_is_one_call() {
    let mut fixture = Fixture::open().await;
    fixture.tools.expect::<RunTool>(finished(1, output("hi", 0, 4)));
    let ran = fixture.run("echo hi").await.unwrap();
    assert_eq!((&*ran.content, ran.continued), ("hi", false));
    let calls = fixture.tools.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        calls[0],
        json!({"shell": "agent", "command": "echo hi", "quietMs": 10_000.0, "outputLines": 10_500})
    );
}

#[tokio::test]
async fn each_wait_begins_where_the_last_one_ended() {
    let mut fixture = Fixture::open().await;
    fixture.tools.expect::<RunTool>(running(1, output("a", 0, 3)));
    fixture.run("long").await.unwrap();
    fixture.tools.expect::<Wait>(running(1, output("b", 3, 6)));
    let more = fixture.run("").await.unwrap();
    assert_eq!((&*more.content, more.continued), ("b", true));
    // Another command is refused, with the new output of the first one.
    fixture.tools.expect::<Wait>(running(1, output("c", 6, 9)));
    let busy = fixture.run("other").await.unwrap();
    assert_eq!((&*busy.content, busy.outcome), ("c", Outcome::Busy));
    // If it ends unseen, the rest of its output comes before the output of the next command.
    fixture.tools.expect::<Wait>(finished(1, output("d", 9, 12)));
    fixture.tools.expect::<RunTool>(finished(2, output("e", 12, 15)));
    assert_eq!(fixture.run("other").await.unwrap().content, "d\ne");
    let from: Vec<_> = fixture.tools.calls().iter().map(|call| call["from"].clone()).collect();
    assert_eq!(from, [json!(null), json!(3), json!(6), json!(9), json!(null)]);
}

#[tokio::test]
async fn input_is_sent_only_while_a_command_runs() {
    let mut fixture = Fixture::open().await;
    fixture.tools.expect::<RunTool>(running(1, output("Name: ", 0, 6)));
    fixture.run("ask").await.unwrap();
    fixture.tools.expect::<Wait>(running(1, output("", 6, 6)));
    fixture.tools.expect::<Input>(json!({}));
    fixture.tools.expect::<Wait>(finished(1, output("John\nHello John", 6, 20)));
    assert_eq!(fixture.input("John").await.unwrap().content, "Hello John");
    let calls = fixture.tools.calls();
    assert_eq!(calls[2], json!({"shell": "agent", "text": "John", "enter": true}));

    fixture.tools.expect::<RunTool>(running(2, output("", 20, 20)));
    fixture.run("ask").await.unwrap();
    fixture.tools.expect::<Wait>(finished(2, output("", 20, 20)));
    fixture.tools.expect::<Wait>(finished(2, output("", 20, 20)));
    let late = fixture.input("John").await.unwrap();
    let Outcome::Completed { completion, .. } = late.outcome else { panic!("{late:?}") };
    assert_eq!(completion, Completion::InputNotSent);
    fixture.tools.calls();
}

#[tokio::test]
async fn a_command_whose_caller_left_is_found_again() {
    let mut fixture = Fixture::open().await;
    fixture.tools.expect::<RunTool>(finished(1, output("", 0, 0)));
    fixture.run("first").await.unwrap();
    for (found, is_lost) in [(2, true), (1, false)] {
        fixture.tools.expect_endless::<RunTool>();
        let left = tokio::time::timeout(Duration::ZERO, fixture.run("second")).await;
        assert!(left.is_err());
        // If the call was dropped before it reached the shell, the latest command is an older one.
        fixture.tools.expect::<Wait>(running(found, output("x", 0, 3)));
        match is_lost {
            true => {
                fixture.tools.expect::<Wait>(finished(found, output("x", 0, 3)));
                let found = fixture.run("").await.unwrap();
                assert_eq!((&*found.content, found.continued), ("x", false));
                fixture.tracker.last_reported = 1;
            }
            false => {
                let none = fixture.run("").await.unwrap();
                assert_eq!(none.outcome, Outcome::NothingRunning(NothingRunning::Output));
            }
        }
        fixture.tools.calls();
    }
}

#[tokio::test]
async fn a_command_of_another_client_is_respected() {
    let mut fixture = Fixture::open().await;
    fixture.tools.expect_failure::<RunTool>(failure(ErrorKind::Conflict, "busy"));
    fixture.tools.expect::<Wait>(running(7, output("theirs", 0, 6)));
    let busy = fixture.run("mine").await.unwrap();
    assert_eq!((&*busy.content, busy.outcome), ("theirs", Outcome::Busy));
    fixture.tools.expect::<Wait>(finished(7, output("", 6, 6)));
    fixture.run("").await.unwrap();
    let calls = fixture.tools.calls();
    assert_eq!((&calls[2]["command"], &calls[2]["from"]), (&json!(7), &json!(6)));
}

#[tokio::test]
async fn a_shell_that_has_ended_is_started_anew() {
    for (kind, reason) in [
        (ErrorKind::NotFound, "noSuchShell"),
        (ErrorKind::NotFound, "closed"),
        (ErrorKind::HostGone, "serverGone"),
    ] {
        let mut fixture = Fixture::open().await;
        fixture.tools.expect_failure::<RunTool>(failure(kind, reason));
        fixture.expect_creation();
        fixture.tools.expect::<RunTool>(finished(1, output("new", 0, 3)));
        assert_eq!(fixture.run("echo new").await.unwrap().content, "new", "{reason}");
        fixture.tools.calls();
    }
    // A runtime that is gone may have run the command, so it is not run again.
    let mut fixture = Fixture::open().await;
    fixture.tools.expect_failure::<RunTool>(ErrorKind::HostGone.error("gone"));
    assert!(matches!(fixture.run("x").await, Err(ActionError::Call(_))));
    fixture.tools.calls();
}

#[tokio::test]
async fn a_shell_that_is_closed_under_a_command_is_gone() {
    let mut fixture = Fixture::open().await;
    let mut closed = finished(1, output("", 0, 0));
    closed["ended"] = json!("shellClosed");
    fixture.tools.expect::<RunTool>(closed);
    let gone = fixture.run("sleep 1000").await.unwrap_err();
    assert_eq!(gone.to_string(), "the shell agent was closed: run the command again in a new one");
    fixture.expect_creation();
    fixture.tools.expect::<RunTool>(finished(1, output("new", 0, 3)));
    assert_eq!(fixture.run("echo new").await.unwrap().content, "new");
    fixture.tools.calls();
}

#[tokio::test]
async fn a_cancel_presses_ctrl_c_until_the_command_ends() {
    let mut fixture = Fixture::open().await;
    fixture.tools.expect_endless::<RunTool>();
    for _ in 0..3 {
        fixture.tools.expect::<Keys>(json!({}));
    }
    let cancellation = Arc::clone(&fixture.cancellation);
    let cancelling = async move { cancellation.cancel() };
    let (cancelled, ()) = tokio::join!(biased; fixture.run("deaf"), cancelling);
    assert!(matches!(cancelled, Err(ActionError::Cancelled)));
    let calls = fixture.tools.calls();
    assert_eq!(calls[1..], [(); 3].map(|()| json!({"shell": "agent", "keys": ["C-c"]})));
    // An action that was cancelled before it began does not begin.
    fixture.tools.expect::<Wait>(finished(1, output("", 0, 0)));
    assert!(matches!(fixture.run("never").await, Err(ActionError::Cancelled)));
    fixture.tools.calls();
    // A command that is still running blocks the next one.
    fixture.cancellation = Arc::default();
    fixture.tools.expect::<Wait>(running(1, output("still", 0, 5)));
    assert_eq!(fixture.run("next").await.unwrap().outcome, Outcome::Busy);
    fixture.tools.calls();
}

#[tokio::test]
async fn streamed_output_has_no_gaps_and_no_torn_characters() {
    let mut fixture = Fixture::open().await;
    let piece = |offset: u64, base64: &str| json!({"offset": offset, "base64": base64});
    // "aä" in two pieces, then "z"; the bytes "bc" between them were dropped, and "!" at the end.
    let pieces = vec![piece(10, "YcM="), piece(12, "pA=="), piece(15, "eg==")];
    fixture.tools.expect_stream::<RunTool>(pieces, finished(1, output("aäbcz!", 10, 17)));
    let read = |start: u64, end: u64, base64: &str| json!({"start": start, "end": end, "logEnd": 17, "more": false, "base64": base64});
    fixture.tools.expect::<Read>(read(13, 15, "YmM="));
    fixture.tools.expect::<Read>(read(16, 17, "IQ=="));
    let (sink, mut pieces) = mpsc::channel(16);
    fixture.act(&run("print"), Some(&sink)).await.unwrap();
    drop(sink);
    let mut shown = Vec::new();
    while let Some(OutputPiece { text, place }) = pieces.recv().await {
        shown.push((text, place.unwrap()));
    }
    let expected = [("a", 10..11), ("ä", 11..13), ("bc", 13..15), ("z", 15..16), ("!", 16..17)];
    assert_eq!(shown, expected.map(|(text, place)| (text.to_owned(), place)));
    let calls = fixture.tools.calls();
    assert_eq!(calls[1], json!({"shell": "agent", "from": 13, "bytes": 2, "raw": true}));
}
