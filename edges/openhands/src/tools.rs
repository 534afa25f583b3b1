//! Calls tools. Actions reach shells, files, cells and pages in no other way.
//!
//! [`LocalTools`] calls the tools of a sandbox in this process, for the action server.
//! [`BrokerTools`] calls the tools of a runtime that is registered with a broker.

mod broker;
#[cfg(test)]
mod fake;
mod local;

use std::path::PathBuf;

use bridge_protocol::WireError;
use bridge_protocol::methods::MethodType;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::action::Cancellation;

pub use broker::{BrokerTools, Route};
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
