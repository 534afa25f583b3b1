//! Calls tools. Actions reach shells, files, cells and pages in no other way.
//!
//! [`LocalTools`] calls the tools of a sandbox in this process, for the action server.
//! [`BrokerTools`] calls the tools of a runtime that is registered with a broker.

mod broker;
#[cfg(test)]
mod fake;
mod local;

use std::path::PathBuf;

use bridge_protocol::methods::MethodType;
use bridge_protocol::text::brief;
use bridge_protocol::{ErrorKind, WireError};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

use crate::action::Cancellation;

pub use broker::{BrokerRuntimes, BrokerTools, Route};
#[cfg(test)]
pub(crate) use fake::FakeTools;
pub(crate) use local::FileTools;
pub use local::LocalTools;

/// Calls the tools of one runtime. Clones call the same runtime.
///
/// Dropping the future of a call ends the wait for its answer. A command that the call has started goes on.
pub trait Tools: Clone + Send + Sync + 'static {
    /// Calls a tool and waits for its answer.
    fn call<M: MethodType>(
        &self,
        params: &M::Params,
        listener: Listener<'_>,
    ) -> impl Future<Output = Result<M::Result, WireError>> + Send
    where
        M::Params: Sync,
        M::Result: Send;

    /// The directory in which the runtime's shells start: the first folder of its workspace.
    fn directory(&self) -> impl Future<Output = Result<PathBuf, WireError>> + Send;
}

/// The runtimes whose tools actions can call.
pub trait Runtimes: Send + Sync + 'static {
    /// Calls the tools of one runtime.
    type Tools: Tools;

    /// Replaces what the caller of an action has named by the id of the runtime, so that equal
    /// routes mean the same runtime. A route that leads to none or to several stays as it is, and
    /// the first call fails with the reason.
    fn resolve(&self, route: Route) -> impl Future<Output = Route> + Send;

    /// The tools of the runtime that a route leads to.
    fn connect(&self, route: Route) -> Self::Tools;
}

/// Options of a call: where its progress goes, and how to cancel it.
#[derive(Debug, Default)]
pub struct Listener<'a> {
    /// Receives the progress of the call, in order. A tool in this process waits while the channel
    /// is full; from another process, pieces may be dropped.
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
    /// Cancels the request itself, for tools to which a cancel means more than the end of the wait
    /// (`cell/run` interrupts its cell). The call then fails with *RequestCancelled*, unless its
    /// answer comes first.
    pub cancellation: Option<&'a Cancellation>,
}

fn print_params<M: MethodType>(params: &M::Params) -> Result<Box<RawValue>, WireError> {
    to_raw_value(params).map_err(|error| {
        ErrorKind::InvalidParams.error(format!("cannot print the params of {}: {error}", M::NAME))
    })
}

fn read_result<M: MethodType>(answer: &RawValue) -> Result<M::Result, WireError> {
    serde_json::from_str(answer.get()).map_err(|error| {
        let detail = error.to_string();
        let reason = format!("the answer to {} is wrong: {}", M::NAME, brief(&detail));
        ErrorKind::BadHostResponse.error(reason)
    })
}
