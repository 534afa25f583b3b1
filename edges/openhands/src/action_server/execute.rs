//! Actions over HTTP.

use std::{convert::Infallible, path::Path, sync::Arc};

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
    event::{self, Asked},
    failure::Failure,
    server::Server,
};
use crate::{
    action::{
        Action, ActionError, Cancellation, ErrorKind, OutputPiece, OutputSink, Read, ReadAs,
        Request, Watch,
    },
    event::{Answer, Event},
};

/// Pieces of output that may wait for a slow reader. When they are that many, the output waits in the
/// log.
const PIECES: usize = 16;

/// Carries an action out and answers when it is done, or when its wait is over. A client that goes away
/// does not stop the command.
pub(super) async fn execute_action(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Json<Answer>, Failure> {
    let asked = take(&server, &body)?;
    Ok(Json(carry_out(&server, asked, None).await))
}

/// Carries an action out and answers with a stream of events: `start`, `output` as it comes, and `complete` with the observation.
pub(super) async fn execute_action_stream(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    let asked = take(&server, &body)?;
    let (events, received) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        tokio::select! {
            () = stream_events(&server, asked, &events) => {}
            // The reader has gone. A command goes on, as it does without a stream.
            () = events.closed() => {}
        }
    });
    let events = stream::unfold(received, |mut received| async {
        received.recv().await.map(|event| (Ok(event), received))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

async fn stream_events(server: &Server, asked: Asked, events: &mpsc::Sender<sse::Event>) {
    let started = sse::Event::default().event("start").data(r#"{"status":"started"}"#);
    let _ = events.send(started).await;
    let (output, mut pieces) = mpsc::channel::<OutputPiece>(PIECES);
    let pass_on = async {
        while let Some(piece) = pieces.recv().await {
            if piece.text.is_empty() {
                continue;
            }
            let data = json!({ "content": piece.text }).to_string();
            let _ = events.send(sse::Event::default().event("output").data(data)).await;
        }
    };
    let carried_out = async {
        let answer = carry_out(server, asked, Some(&output)).await;
        drop(output);
        answer
    };
    let (answer, ()) = tokio::join!(carried_out, pass_on);
    if let Ok(complete) = sse::Event::default().event("complete").json_data(&answer) {
        let _ = events.send(complete).await;
    }
}

fn take(server: &Server, body: &Bytes) -> Result<Asked, Failure> {
    server.note_action();
    let asked = event::parse(body)?;
    if matches!(asked.event.action, Ok(Action::RunIpython(_))) && !server.plugins.jupyter {
        let detail = "JupyterRequirement not found: start the server with --plugins jupyter";
        return Err(Failure::of(ErrorKind::Unavailable, detail));
    }
    Ok(asked)
}

async fn carry_out(server: &Server, asked: Asked, output: Option<&OutputSink>) -> Answer {
    let Asked { event: Event { action, question }, timeout } = asked;
    let executor = server.executor().await;
    // Nobody can cancel an action over HTTP.
    let watch = Watch { output, cancellation: &Arc::new(Cancellation::default()) };
    let result = match action {
        Ok(action) => match relative_path(&action, &server.directory) {
            Some(error) => Err(error),
            None => executor.execute(Request { action, timeout }, watch).await,
        },
        Err(error) => Err(error),
    };
    question.observe(result, executor, server.error_form).await
}

/// The editor of OpenHands wants absolute paths.
pub(super) fn relative_path(action: &Action, directory: &Path) -> Option<ActionError> {
    let path = match action {
        Action::Read(Read { path, form: ReadAs::View { .. } }) => path,
        Action::Edit(edit) => &edit.path,
        _ => return None,
    };
    if path.is_absolute() {
        return None;
    }
    let mut hint = "It must be absolute and start with `/`.".to_owned();
    let likely = directory.join(path);
    if likely.exists() {
        hint.push_str(&format!(" Did you mean {}?", likely.display()));
    }
    Some(ActionError::Argument { name: "path", value: path.display().to_string(), hint })
}
