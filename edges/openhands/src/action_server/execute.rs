//! Serves actions over HTTP.

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
    event::{self, ActionRequest},
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

/// Capacity of the queue for a slow reader. When it is full, further output waits in the log.
const PIECES: usize = 16;

/// Carries out an action and answers when it is done, or when the wait for it has ended. A client
/// that disconnects does not stop the command.
pub(super) async fn execute_action(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Json<Answer>, Failure> {
    let request = parse_request(&server, &body)?;
    Ok(Json(carry_out(&server, request, None).await))
}

/// Carries out an action and answers with a stream of events: `start`, `output` as it comes, and
/// `complete` with the observation.
pub(super) async fn execute_action_stream(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    let request = parse_request(&server, &body)?;
    let (events, received) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        tokio::select! {
            () = stream_events(&server, request, &events) => {}
            // The reader is gone. A command goes on, as it does without a stream.
            () = events.closed() => {}
        }
    });
    let events = stream::unfold(received, |mut received| async {
        received.recv().await.map(|event| (Ok(event), received))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

async fn stream_events(server: &Server, request: ActionRequest, events: &mpsc::Sender<sse::Event>) {
    let started = sse::Event::default().event("start").data(r#"{"status":"started"}"#);
    // Fails only if the reader is gone, which ends this task.
    let _ = events.send(started).await;
    let (output, mut pieces) = mpsc::channel::<OutputPiece>(PIECES);
    let pass_on = async {
        while let Some(piece) = pieces.recv().await {
            if piece.text.is_empty() {
                continue;
            }
            let data = json!({ "content": piece.text }).to_string();
            // Fails only if the reader is gone, which ends this task.
            let _ = events.send(sse::Event::default().event("output").data(data)).await;
        }
    };
    let carried_out = async {
        let answer = carry_out(server, request, Some(&output)).await;
        drop(output);
        answer
    };
    let (answer, ()) = tokio::join!(carried_out, pass_on);
    if let Ok(complete) = sse::Event::default().event("complete").json_data(&answer) {
        // Fails only if the reader is gone, which ends this task.
        let _ = events.send(complete).await;
    }
}

fn parse_request(server: &Server, body: &Bytes) -> Result<ActionRequest, Failure> {
    server.note_action();
    let request = event::parse(body)?;
    if matches!(request.event.action, Ok(Action::RunIpython(_))) && !server.plugins.jupyter {
        let detail = "JupyterRequirement not found: start the server with --plugins jupyter";
        return Err(Failure::of(ErrorKind::Unavailable, detail));
    }
    Ok(request)
}

async fn carry_out(server: &Server, request: ActionRequest, output: Option<&OutputSink>) -> Answer {
    let ActionRequest { event: Event { action, context }, timeout } = request;
    let executor = server.executor().await;
    // An action over HTTP cannot be cancelled.
    let watch = Watch { output, cancellation: &Arc::new(Cancellation::default()) };
    let result = match action {
        Ok(action) => match relative_path(&action, &server.directory) {
            Some(error) => Err(error),
            None => executor.execute(Request { action, timeout }, watch).await,
        },
        Err(error) => Err(error),
    };
    context.observe(result, executor, server.error_form).await
}

/// The error for a relative path, which the editor of OpenHands does not accept.
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
