//! The plain HTTP routes beside the WebSocket. The gate has seen the request head already; one
//! request is served per connection, so nothing can follow it past the gate.

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
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::broker::SubmitError;
use crate::hub::Hub;

/// Serves the one request whose first bytes have been read already.
pub async fn serve<S>(hub: Arc<Hub>, socket: S, already_read: Vec<u8>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, writer) = tokio::io::split(socket);
    let rewound = tokio::io::join(Cursor::new(already_read).chain(reader), writer);
    let service = service_fn(|request| route(Arc::clone(&hub), request));
    let served = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(rewound), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "plain request failed");
    }
}

async fn route(
    hub: Arc<Hub>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match request.uri().path() {
        "/healthz" => answer(StatusCode::OK, "text/plain", "ok\n".to_owned()),
        "/status" => {
            let status = serde_json::to_string(&hub.status()).expect("a status always prints");
            answer(StatusCode::OK, "application/json", status)
        }
        "/metrics" => {
            let text = hub.metrics().render(&hub.status());
            answer(
                StatusCode::OK,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                text,
            )
        }
        _ => match submit(&hub, request).await {
            Ok(operation) => {
                let body = json!({"ok": true, "operationId": operation}).to_string();
                answer(StatusCode::OK, "application/json", body)
            }
            Err((status, reason)) => {
                answer(status, "application/json", json!({ "error": reason }).to_string())
            }
        },
    })
}

/// `POST /submit`, with the fields and answers of the original.
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
    let body = Limited::new(request.into_body(), MESSAGE_BYTES).collect().await;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => (StatusCode::PAYLOAD_TOO_LARGE, "the body may have at most 16 MiB"),
        None => (StatusCode::BAD_REQUEST, "the body did not arrive whole"),
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
        SubmitError::Ambiguous => {
            (StatusCode::CONFLICT, "operations of several programs have this resumeToken")
        }
    })
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
