//! The messages from handles to the driver of their shell.

use tokio::sync::oneshot;

use super::{input::Key, input::Signal, job::JobWatch, ledger::Size};
use crate::Result;

/// The channel for the answer to a message.
pub(crate) type Answer<T = ()> = oneshot::Sender<Result<T>>;

/// Everything that a handle can ask of a shell. Messages are handled in order of arrival.
#[derive(Debug)]
pub(crate) enum Control {
    Run {
        text: Vec<u8>,
        answer: Answer<JobWatch>,
    },
    /// Types these bytes into the terminal.
    Type {
        bytes: Vec<u8>,
        answer: Answer,
    },
    Press {
        keys: Vec<Key>,
        answer: Answer,
    },
    Signal {
        signal: Signal,
        answer: Answer,
    },
    Resize {
        size: Size,
        answer: Answer,
    },
    /// Makes the shell write its environment to the file `exports`.
    Exports {
        answer: Answer,
    },
    /// Answered when the driver has processed all lines that are in the index now.
    CatchUp {
        answer: Answer,
    },
    /// A caller waiting for a command found it quiet and the shell at a prompt.
    LooksIdle,
    Close {
        answer: Answer,
    },
}
