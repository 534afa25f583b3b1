//! Actions over HTTP.

use std::sync::Arc;

use axum::{Json, body::Bytes, extract::State};

use super::{
    answer::Answer,
    event::{self, Event},
    failure::Failure,
    server::Server,
};

/// Carries an action out and answers when it is done, or when its wait is over. A client that goes away
/// does not stop the command.
pub(super) async fn execute_action(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Json<Answer>, Failure> {
    server.note_action();
    let Event { request, asked } = event::parse(&body)?;
    let executor = server.executor().await;
    let result = match request {
        Ok(request) => executor.execute(request, None).await,
        Err(error) => Err(error),
    };
    Ok(Json(Answer::new(&asked, result, executor, server.traces)))
}
