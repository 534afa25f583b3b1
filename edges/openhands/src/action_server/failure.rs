//! The HTTP answer to a request that could not be served.
//!
//! Clients read `detail` from a JSON object and treat all such answers alike, so the status can be
//! accurate.

use axum::{
    Json, body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use listener::Refusal;
use serde::Serialize;

use crate::action::{ActionError, ErrorKind};
use sandbox_files as files;

/// Limit for the text of an answer that the framework made.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The member of an answer in which clients look for the reason.
pub(super) const DETAIL: &str = "detail";

/// The answer to a request that failed.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    body: Body,
}

#[derive(Debug, Serialize)]
struct Body {
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::FORBIDDEN);
        Self::new(status, refusal.message)
    }
}

impl Failure {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, body: Body { detail: detail.into(), errors: None, kind: None } }
    }

    /// A body or query that does not have the right form. `errors` is a text, not a list.
    pub(super) fn unprocessable(place: &str, problem: &str) -> Self {
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid request parameters");
        failure.body.errors = Some(format!("[{{'loc': '{place}', 'msg': '{problem}'}}]"));
        failure
    }

    /// A well-formed request that is not valid.
    pub(super) fn invalid(detail: &str) -> Self {
        Self::of(ErrorKind::Invalid, detail)
    }

    pub(super) fn of(kind: ErrorKind, detail: impl Into<String>) -> Self {
        let mut failure = Self::new(status(kind), detail);
        failure.body.kind = Some(kind.name());
        failure
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    #[cfg(test)]
    pub(super) fn detail(&self) -> &str {
        &self.body.detail
    }
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        Self::of(error.kind(), error.to_string())
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Self {
        let kind = match &error {
            files::Error::Escapes { .. } => ErrorKind::OutsideWorkspace,
            files::Error::NotFound { .. } => ErrorKind::NotFound,
            files::Error::Denied { .. } => ErrorKind::Permission,
            files::Error::Io { .. } => ErrorKind::Internal,
            _ => ErrorKind::Invalid,
        };
        Self::of(kind, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

/// Converts error answers of the framework to our form, such as the one for a body that is too
/// large.
pub(super) async fn as_object(response: Response) -> Response {
    let (status, json) = (response.status(), HeaderValue::from_static("application/json"));
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || response.headers().get(header::CONTENT_TYPE) == Some(&json) {
        return response;
    }
    let text = body::to_bytes(response.into_body(), MAX_TEXT_BYTES).await.unwrap_or_default();
    Failure::new(status, String::from_utf8_lossy(&text)).into_response()
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Unavailable => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Cancelled | ErrorKind::Refused => StatusCode::CONFLICT,
        ErrorKind::OutsideWorkspace | ErrorKind::Permission => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
