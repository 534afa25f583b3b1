//! The plain HTTP routes beside the WebSocket. The gate has already checked the request head. Only one request is
//! served per connection, so no second one can avoid the gate.

use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;

use bridge_protocol::limits::MESSAGE_BYTES;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

use crate::broker::SubmitError;
use crate::connection::Socket;
use crate::gate::Route;
use crate::hub::Hub;

/// How many bodies are read at a time. Further requests wait, so that bodies cannot fill the memory.
static BODIES: Semaphore = Semaphore::const_new(4);

/// Serves one request, of which `already_read` has been read.
pub async fn serve(hub: Arc<Hub>, route: Route, socket: Box<dyn Socket>, already_read: Vec<u8>) {
    let (reader, writer) = tokio::io::split(socket);
    let rewound = tokio::io::join(Cursor::new(already_read).chain(reader), writer);
    let service = service_fn(|request| answer(Arc::clone(&hub), route, request));
    let served = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(rewound), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "plain request failed");
    }
}

async fn answer(
    hub: Arc<Hub>,
    route: Route,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match route {
        Route::Health => response(StatusCode::OK, "text/plain", "ok\n".to_owned()),
        Route::Status => {
            let status = serde_json::to_string(&hub.status()).expect("a status always prints");
            response(StatusCode::OK, "application/json", status)
        }
        Route::Metrics => {
            let text = hub.metrics().render(&hub.status());
            response(
                StatusCode::OK,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                text,
            )
        }
        Route::Submit => match submit(&hub, request).await {
            Ok(operation) => {
                let body = json!({"ok": true, "operationId": operation}).to_string();
                response(StatusCode::OK, "application/json", body)
            }
            Err((status, reason)) => {
                response(status, "application/json", json!({ "error": reason }).to_string())
            }
        },
    })
}

/// `POST /submit`, with the fields and answers of the original project.
async fn submit(
    hub: &Arc<Hub>,
    request: Request<Incoming>,
) -> Result<String, (StatusCode, &'static str)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Submit {
        resume_token: Option<String>,
        result: Option<Box<RawValue>>,
        #[serde(alias = "session")]
        session_id: Option<String>,
    }
    let _turn = BODIES.acquire().await;
    let body = Limited::new(request.into_body(), MESSAGE_BYTES).collect().await;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => (StatusCode::PAYLOAD_TOO_LARGE, "the body may have at most 16 MiB"),
        None => (StatusCode::BAD_REQUEST, "the body is incomplete"),
    })?;
    let submit: Submit = serde_json::from_slice(&body.to_bytes())
        .map_err(|_| (StatusCode::BAD_REQUEST, "the body must be a JSON object"))?;
    let other_session =
        |session: String| hub.with_broker(|broker, _| broker.session().as_str() != session);
    if submit.session_id.is_some_and(other_session) {
        return Err((StatusCode::UNAUTHORIZED, "this daemon serves another session"));
    }
    let Some(token) = submit.resume_token.filter(|token| !token.is_empty()) else {
        return Err((StatusCode::BAD_REQUEST, "resumeToken is missing"));
    };
    let result = submit.result.unwrap_or_else(|| RawValue::NULL.to_owned());
    let submitted = hub.with_broker(|broker, _| broker.submit(&token, &result));
    hub.settle();
    submitted.map_err(|error| match error {
        SubmitError::Unknown => (StatusCode::NOT_FOUND, "no operation has this resumeToken"),
        SubmitError::Finished => (StatusCode::CONFLICT, "the operation has ended already"),
        SubmitError::Overloaded => {
            (StatusCode::SERVICE_UNAVAILABLE, "the program leaves too much unread: try again later")
        }
        SubmitError::Ambiguous => {
            (StatusCode::CONFLICT, "operations of several programs have this resumeToken")
        }
    })
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}
