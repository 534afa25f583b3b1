//! Runs jobs on hostile input in helper processes.
//!
//! A parser, a search or a renderer that works on other people's input can panic, overflow its
//! stack, fill the memory or never end. So such work is a [`Job`], which a process of its own
//! carries out: one process for each job, with limits of time and memory. Whatever happens there,
//! the caller gets an answer or a typed [`Error`], and everything else goes on.
//!
//! - [`Worker`] is the caller's side: it starts the helper, sends the request and waits for the
//!   answer. When the limit passes or the future is dropped, the helper is killed with everything
//!   that it has started.
//! - [`Assignment`] is the helper's side: a hidden subcommand (`work JOB SECONDS`) of the program
//!   that calls. So there is no second program to install.
//!
//! Request and answer are JSON, each behind its length in bytes, on the helper's standard input and
//! output. The input stays open until the answer is there: when it closes, the caller has died, and
//! the helper ends.

mod assignment;
mod frame;
mod worker;

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

pub use assignment::Assignment;
pub use worker::Worker;

/// The subcommand that carries out jobs.
const COMMAND: &str = "work";

/// A kind of job.
pub trait Job {
    /// The input of the job.
    type Request: Serialize + DeserializeOwned;
    /// The result.
    type Answer: Serialize + DeserializeOwned;

    /// The name of the job on the command line of the helper.
    const NAME: &'static str;
    /// The address space of the helper in bytes; `None` if it starts programs that need more than
    /// can be foreseen.
    const MEMORY: Option<u64>;
    /// The largest answer in bytes.
    const ANSWER_BYTES: u64;

    /// Does the work, in the helper.
    fn carry_out(request: Self::Request) -> Self::Answer;
}

/// Why a job has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The limit of time passed. The helper was killed.
    #[error("it took longer than {limit:?} and was stopped")]
    TookTooLong {
        /// The limit.
        limit: Duration,
    },
    /// The helper needed more memory than the job may have.
    #[error("it needed more than the {} MiB of memory that it may have", limit >> 20)]
    TooMuchMemory {
        /// The limit in bytes.
        limit: u64,
    },
    /// The answer is larger than the job may give.
    #[error("its answer is larger than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: u64,
    },
    /// The helper ended without an answer: a panic, a stack overflow, or a kill by somebody else.
    #[error("its process ended without an answer ({status}){}", after_colon(words))]
    Crashed {
        /// How it ended.
        status: ExitStatus,
        /// The beginning of its standard error.
        words: String,
    },
    /// The helper could not be started, or does not speak this protocol.
    #[error(
        "{} cannot do this work ({reason}): install the version that belongs to this program",
        program.display()
    )]
    Unusable {
        /// The program of the helper.
        program: PathBuf,
        /// The failure, in words.
        reason: String,
    },
}

fn after_colon(words: &str) -> String {
    match words.is_empty() {
        true => String::new(),
        false => format!(": {words}"),
    }
}
