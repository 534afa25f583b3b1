//! The routes.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{execute, failure::Failure, info::ServerInfo, server::Server};

/// Bytes of an action. A larger file comes by upload.
const ACTION_BYTES: usize = 64 << 20;

pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/alive", get(alive))
        .route("/server_info", get(server_info))
        .route("/execute_action", post(execute::execute_action))
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "Not Found"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
        })
        .layer(DefaultBodyLimit::max(ACTION_BYTES))
        // Outermost, so that it comes before everything, also before the question whether there is
        // such a path.
        .layer(middleware::from_fn_with_state(Arc::clone(&server), check_access))
        .with_state(server)
}

async fn check_access(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    match server.access.check(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

async fn alive(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(json!({ "status": if server.is_ready() { "ok" } else { "not initialized" } }))
}

async fn server_info(State(server): State<Arc<Server>>) -> Json<ServerInfo> {
    Json(ServerInfo::take(server.started(), server.last_action()))
}
