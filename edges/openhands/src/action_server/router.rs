//! The routes of the server.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde_json::{Value, json};

use super::{
    access::Visitor,
    execute,
    failure::{self, Failure},
    info::ServerInfo,
    mcp,
    server::Server,
    transfer, vscode,
};

/// Limit for the body of an action in bytes. Larger files can be uploaded.
const ACTION_BYTES: usize = 64 << 20;

/// The OpenAPI description of all routes.
const OPENAPI: &str = include_str!("openapi.json");

/// Every route, with its method.
fn routes() -> [(&'static str, &'static str, MethodRouter<Arc<Server>>); 10] {
    let upload = post(transfer::upload_file).layer(DefaultBodyLimit::max(transfer::UPLOAD_BYTES));
    [
        ("get", "/alive", get(alive)),
        ("get", "/server_info", get(server_info)),
        ("post", "/execute_action", post(execute::execute_action)),
        ("post", "/execute_action_stream", post(execute::execute_action_stream)),
        ("post", "/upload_file", upload),
        ("get", "/download_files", get(transfer::download_files)),
        ("post", "/list_files", post(transfer::list_files)),
        ("post", "/update_mcp_server", post(mcp::update_mcp_server)),
        ("get", "/vscode/connection_token", get(vscode::connection_token)),
        ("get", "/openapi.json", get(openapi)),
    ]
}

pub(super) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new();
    for (_, path, route) in routes() {
        router = router.route(path, route);
    }
    router
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "Not Found"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
        })
        .layer(DefaultBodyLimit::max(ACTION_BYTES))
        .layer(middleware::map_response(failure::as_object))
        // The outermost layer, so that it comes before everything, even before checking that the
        // path exists.
        .layer(middleware::from_fn_with_state(Arc::clone(&server), check_access))
        .with_state(server)
}

async fn check_access(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    match server.access.check(request.uri().path(), request.headers()) {
        Ok(Visitor::Client) => next.run(request).await,
        Ok(Visitor::Stranger) => {
            let mut answer = next.run(request).await;
            // A stranger must not keep the connection, which counts as admitted now.
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            answer
        }
        Err(refusal) => Failure::from(refusal).into_response(),
    }
}

async fn alive(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(json!({ "status": if server.is_ready() { "ok" } else { "not initialized" } }))
}

async fn server_info(State(server): State<Arc<Server>>) -> Json<ServerInfo> {
    Json(ServerInfo::take(server.started(), server.last_action()))
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_exactly_these_routes() {
        let description: Value = serde_json::from_str(OPENAPI).unwrap();
        let mut described = Vec::new();
        for (path, methods) in description["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                assert!(operation["responses"]["200"].is_object(), "{method} {path}");
                described.push((method.clone(), path.clone()));
            }
        }
        let routes = routes().map(|(method, path, _)| (method.to_owned(), path.to_owned()));
        let mut routes = routes.to_vec();
        routes.sort();
        described.sort();
        assert_eq!(described, routes);
    }

    #[test]
    fn the_description_has_exactly_these_actions() {
        let description: Value = serde_json::from_str(OPENAPI).unwrap();
        let described = &description["components"]["schemas"]["Event"]["properties"]["action"];
        assert_eq!(described["enum"], serde_json::json!(crate::event::KNOWN));
    }
}
