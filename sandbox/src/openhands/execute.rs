//! Actions over HTTP.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json,
    body::Bytes,
    extract::State,
    response::sse::{self, KeepAlive, Sse},
};
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    answer::Answer,
    event::{self, Asked, Event},
    failure::Failure,
    server::Server,
};
use crate::action::{ErrorKind, OutputSink};

/// Pieces of output that may wait for a slow reader. When they are that many, the output waits in the
/// log.
const PIECES: usize = 16;

/// Carries an action out and answers when it is done, or when its wait is over. A client that goes away
/// does not stop the command.
pub(super) async fn execute_action(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Json<Answer>, Failure> {
    let event = take(&server, &body)?;
    Ok(Json(carry_out(&server, event, None).await))
}

/// The same as a stream of events: `start`, `output` as it comes, and `complete` with the observation.
pub(super) async fn execute_action_stream(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    let event = take(&server, &body)?;
    let (events, received) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        tokio::select! {
            () = stream_events(&server, event, &events) => {}
            // The reader has gone. A command goes on, as it does without a stream.
            () = events.closed() => {}
        }
    });
    let events = stream::unfold(received, |mut received| async {
        received.recv().await.map(|event| (Ok(event), received))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

async fn stream_events(server: &Server, event: Event, events: &mpsc::Sender<sse::Event>) {
    let started = sse::Event::default().event("start").data(r#"{"status":"started"}"#);
    let _ = events.send(started).await;
    let (output, mut pieces) = mpsc::channel::<String>(PIECES);
    let pass_on = async {
        while let Some(piece) = pieces.recv().await {
            let data = json!({ "content": piece }).to_string();
            let _ = events.send(sse::Event::default().event("output").data(data)).await;
        }
    };
    let carried_out = async {
        let answer = carry_out(server, event, Some(&output)).await;
        drop(output);
        answer
    };
    let (answer, ()) = tokio::join!(carried_out, pass_on);
    if let Ok(complete) = sse::Event::default().event("complete").json_data(&answer) {
        let _ = events.send(complete).await;
    }
}

fn take(server: &Server, body: &Bytes) -> Result<Event, Failure> {
    server.note_action();
    let event = event::parse(body)?;
    if matches!(event.asked, Asked::Cell { .. }) && !server.plugins.jupyter {
        let detail = "JupyterRequirement not found: start the server with --plugins jupyter";
        return Err(Failure::of(ErrorKind::Unavailable, detail));
    }
    Ok(event)
}

async fn carry_out(server: &Server, event: Event, output: Option<&OutputSink>) -> Answer {
    let Event { request, asked } = event;
    let executor = server.executor().await;
    let result = match request {
        Ok(request) => executor.execute(request, output).await,
        Err(error) => Err(error),
    };
    Answer::new(&asked, result, executor, server.traces)
}
