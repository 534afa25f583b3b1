//! One call in flight: it gets progress, then exactly one answer.
//!
//! A [`Call`] is the caller's half, a `Waiter` the half that the client's task keeps. Between them are a bounded channel
//! for progress and a channel for the one answer, so a caller that does not read progress can neither miss the answer nor
//! block other calls.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bridge_protocol::limits::MESSAGE_BYTES;
use bridge_protocol::print::ErrorParts;
use bridge_protocol::timeout::{Allowance, RoutingParams};
use bridge_protocol::{ErrorKind, Outcome, WireError, method, print};
use futures_util::future::BoxFuture;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::backoff::FOREVER;
use crate::client::Control;
use crate::error::Error;

/// How many pieces of progress wait for a caller that does not read them. Further ones are dropped: the answer is complete
/// without them.
const PROGRESS_WAITING: usize = 1024;

/// How much longer the client waits than the daemon, so that the daemon's error arrives before the client's own timeout.
const GRACE: Duration = Duration::from_secs(1);

/// A call that has been started. Await it for the answer, or read its [`progress`](Self::progress) first. Dropping it
/// before the answer cancels the request.
#[must_use = "a call that is dropped is cancelled"]
pub struct Call<R> {
    key: CallKey,
    method: String,
    control: mpsc::UnboundedSender<Control>,
    progress: mpsc::Receiver<Box<RawValue>>,
    answer: oneshot::Receiver<Answer>,
    limit: WaitLimit,
    over: bool,
    result: PhantomData<fn() -> R>,
}

/// Cancels a call that another task awaits.
#[derive(Clone, Debug)]
pub struct Canceller {
    key: CallKey,
    control: mpsc::UnboundedSender<Control>,
}

/// Identifies a call within its client before the connection has given it an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallKey(pub u64);

pub(crate) type Answer = Result<Box<RawValue>, Error>;

/// The half of a call that the client's task keeps.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub key: CallKey,
    pub started: Instant,
    /// When the call fails if it could not be sent because there is no connection.
    pub deadline: Instant,
    pub method: String,
    progress: mpsc::Sender<Box<RawValue>>,
    answer: oneshot::Sender<Answer>,
    /// Released when the call ends for whatever reason.
    _permit: Option<OwnedSemaphorePermit>,
}

/// How long a call waits: as long as the daemon, plus [`GRACE`].
#[derive(Debug)]
struct WaitLimit {
    started: Instant,
    allowance: Allowance,
    /// The maximum, however much progress comes.
    longest: Duration,
    until: Instant,
}

impl<R: DeserializeOwned> Call<R> {
    /// Waits for the next piece of the answer. Returns `None` when there are no more, because the answer has arrived or
    /// the time is over.
    pub async fn progress(&mut self) -> Option<Box<RawValue>> {
        let piece = timeout_at(self.limit.until, self.progress.recv()).await.ok().flatten();
        if piece.is_some() {
            self.limit.renew(Instant::now());
        }
        piece
    }

    /// Tells the daemon that the answer is no longer wanted. The call still gets an answer: -32800, or the usual one if
    /// that was already on its way.
    pub fn cancel(&self) {
        self.canceller().cancel();
    }

    /// A handle with which another task can cancel the call while this one awaits it.
    pub fn canceller(&self) -> Canceller {
        Canceller { key: self.key, control: self.control.clone() }
    }

    /// Waits for the answer and discards progress. Awaiting the call does the same.
    pub async fn answer(mut self) -> Result<R, Error> {
        while self.progress().await.is_some() {}
        let Ok(answer) = timeout_at(self.limit.until, &mut self.answer).await else {
            let after = self.limit.started.elapsed();
            return Err(Error::TimedOut { method: self.method.clone(), after });
        };
        self.over = true;
        let result = answer.unwrap_or(Err(Error::Closed))?;
        serde_json::from_str(result.get()).map_err(|error| Error::BadAnswer {
            method: self.method.clone(),
            reason: error.to_string(),
        })
    }
}

impl<R: DeserializeOwned + 'static> IntoFuture for Call<R> {
    type Output = Result<R, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        if !self.over {
            // If the task has ended, there is no connection and nothing to cancel.
            let _ = self.control.send(Control::Abandon(self.key));
        }
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Canceller {
    /// Cancels the call, as [`Call::cancel`] does.
    pub fn cancel(&self) {
        // An error means that the client has closed, which has ended the call.
        let _ = self.control.send(Control::Cancel(self.key));
    }
}

impl Waiter {
    /// Passes a piece on to the caller, unless too many wait already or the caller has gone.
    pub fn progress(&self, value: &RawValue) {
        // An error is one of these two cases.
        let _ = self.progress.try_send(value.to_owned());
    }

    /// Ends the call.
    pub fn finish(self, answer: Answer) {
        // An error means that the caller has dropped the call.
        let _ = self.answer.send(answer);
    }

    /// Ends the call with the answer of the daemon.
    pub fn finish_with(self, outcome: Outcome<'_>) {
        let answer = answer_of(&self.method, outcome);
        self.finish(answer);
    }
}

impl WaitLimit {
    fn new(now: Instant, allowance: Allowance, longest: Duration) -> Self {
        Self { started: now, allowance, longest, until: now + allowance.duration() + GRACE }
    }

    /// Restarts the time after progress, which shows that work goes on. As at the daemon, this holds for a default timeout
    /// and not for a chosen one, and never beyond the maximum.
    fn renew(&mut self, now: Instant) {
        if let Allowance::Default(duration) = self.allowance {
            self.until = (now + duration).min(self.started + self.longest) + GRACE;
        }
    }
}

/// Makes both halves of a call. Without `timeout`, the timeout in the parameters applies, or else the method's default.
pub(crate) fn pair<R>(
    key: CallKey,
    method: &str,
    params: Option<&RawValue>,
    timeout: Option<Duration>,
    control: mpsc::UnboundedSender<Control>,
    permit: Option<OwnedSemaphorePermit>,
) -> (Call<R>, Waiter) {
    let own = || RoutingParams::read(params).ok().and_then(|routing| routing.timeout);
    let allowance = match timeout {
        Some(timeout) => Allowance::Chosen(timeout.min(FOREVER)),
        None => Allowance::new(own(), method),
    };
    let limit = WaitLimit::new(Instant::now(), allowance, method::longest_timeout(method));
    let (progress_in, progress) = mpsc::channel(PROGRESS_WAITING);
    let (answer_in, answer) = oneshot::channel();
    let waiter = Waiter {
        key,
        started: limit.started,
        deadline: limit.started + allowance.duration(),
        method: method.to_owned(),
        progress: progress_in,
        answer: answer_in,
        _permit: permit,
    };
    let (method, result) = (method.to_owned(), PhantomData);
    (Call { key, method, control, progress, answer, limit, over: false, result }, waiter)
}

/// Adds the caller's timeout to the parameters, so that the daemon and the host know it. Everything else stays unchanged.
/// Nothing is added to an array, to parameters that have a timeout, or for methods that the daemon answers itself.
pub(crate) fn with_timeout(
    method: &str,
    params: Option<Box<RawValue>>,
    timeout: Option<Duration>,
) -> Option<Box<RawValue>> {
    let Some(timeout) = timeout.filter(|_| !method::is_own(method)) else { return params };
    let text = params.as_deref().map_or("{}", RawValue::get);
    let Some(members) = text.strip_prefix('{') else { return params };
    if serde_json::from_str::<Mentions>(text).map_or(true, |found| found.timeout.0) {
        return params;
    }
    let ms = timeout.as_micros() as f64 / 1000.0;
    let comma = if members.trim_start().starts_with('}') { "" } else { "," };
    RawValue::from_string(format!("{{\"timeout\":{ms}{comma}{members}")).ok()
}

/// Prints a notification. Fails if it is larger than a message may be.
pub(crate) fn notification(method: &str, params: &impl Serialize) -> Result<String, Error> {
    let params = to_raw_value(params).map_err(|error| Error::BadParams {
        method: method.to_owned(),
        reason: error.to_string(),
    })?;
    let text = print::notification(method, Some(&params));
    match text.len() {
        bytes if bytes > MESSAGE_BYTES => Err(Error::TooBig { bytes }),
        _ => Ok(text),
    }
}

/// Turns an outcome from the wire into the caller's result or error.
pub(crate) fn answer_of(method: &str, outcome: Outcome<'_>) -> Answer {
    match outcome {
        Outcome::Success(result) => Ok(result.to_owned()),
        Outcome::Failure(error) => {
            let parts: Result<ErrorParts<'_>, _> = serde_json::from_str(error.get());
            Err(Error::Rejected(match parts {
                Ok(parts) => WireError::owned(parts.code, parts.message, parts.data),
                Err(error) => ErrorKind::BadHostResponse.error(error.to_string()),
            }))
        }
        Outcome::Malformed => Err(Error::BadAnswer {
            method: method.to_owned(),
            reason: "it is neither a result nor an error".to_owned(),
        }),
    }
}

/// Whether a member is present, even if it is null.
#[derive(Deserialize)]
struct Mentions {
    #[serde(default)]
    timeout: Present,
}

#[derive(Default)]
struct Present(bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(params: Option<&str>, seconds: f64) -> Option<String> {
        let params = params.map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let timeout = Some(Duration::from_secs_f64(seconds));
        with_timeout("vscode/chat", params, timeout).map(|raw| raw.get().to_owned())
    }

    #[test]
    fn the_deadline_joins_the_params_and_nothing_else_changes() {
        let check = |params, expected: &str| assert_eq!(timed(params, 1.5).unwrap(), expected);
        check(None, r#"{"timeout":1500}"#);
        check(Some("{}"), r#"{"timeout":1500}"#);
        check(Some("{ }"), r#"{"timeout":1500 }"#);
        check(Some(r#"{"n": 1e400}"#), r#"{"timeout":1500,"n": 1e400}"#);
        check(
            Some(r#"{"m":"\ud800","o":{"timeout":1}}"#),
            r#"{"timeout":1500,"m":"\ud800","o":{"timeout":1}}"#,
        );
        assert_eq!(timed(None, 0.0005).unwrap(), r#"{"timeout":0.5}"#);
    }

    #[test]
    fn a_deadline_that_is_there_stays_and_arrays_have_no_place_for_one() {
        for params in
            [r#"{"timeout":5}"#, r#"{"a":1,"timeout":null}"#, r#"{"\u0074imeout":7}"#, "[1]"]
        {
            assert_eq!(timed(Some(params), 1.0).unwrap(), params);
        }
        assert!(with_timeout("bridge/status", None, Some(GRACE)).is_none());
        assert!(with_timeout("vscode/chat", None, None).is_none());
    }

    #[test]
    fn progress_renews_a_default_but_not_a_choice_and_not_for_ever() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let limit = |allowance| WaitLimit::new(start, allowance, Duration::from_secs(600));
        let mut default = limit(Allowance::Default(Duration::from_secs(30)));
        assert_eq!(default.until, after(31));
        default.renew(after(20));
        assert_eq!(default.until, after(51));
        default.renew(after(590));
        assert_eq!(default.until, after(601));
        let mut chosen = limit(Allowance::Chosen(Duration::from_secs(5)));
        chosen.renew(after(4));
        assert_eq!(chosen.until, after(6));
    }

    #[test]
    fn a_hosts_own_error_is_kept_with_its_data_as_written() {
        let raw: &RawValue =
            serde_json::from_str(r#"{"code":7,"message":"no","data":{"n":1e400},"more":1}"#)
                .unwrap();
        match answer_of("m", Outcome::Failure(raw)) {
            Err(Error::Rejected(error)) => {
                assert_eq!((error.code(), error.message()), (7, "no"));
                assert_eq!(error.data().unwrap().get(), r#"{"n":1e400}"#);
            }
            other => panic!("{other:?}"),
        }
    }
}
