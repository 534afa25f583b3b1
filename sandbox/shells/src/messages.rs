//! What handles say to the task of their shell.

use tokio::sync::oneshot;

use super::{input::Key, input::Signal, job::JobWatch, ledger::Size};
use crate::Result;

/// Where the answer to a message goes.
pub(crate) type Answer<T = ()> = oneshot::Sender<Result<T>>;

/// Everything that a shell can be asked. Messages are handled in the order of their arrival.
#[derive(Debug)]
pub(crate) enum Control {
    Run {
        text: Vec<u8>,
        answer: Answer<JobWatch>,
    },
    /// Bytes for the terminal, as if typed.
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
    /// The shell is to write down its environment.
    Exports {
        answer: Answer,
    },
    /// Somebody wants to know what is in the index by now.
    CatchUp {
        answer: Answer,
    },
    /// A waiting caller found the command quiet and the shell at a prompt.
    LooksIdle,
    Close {
        answer: Answer,
    },
}
