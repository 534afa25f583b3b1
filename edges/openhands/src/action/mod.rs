//! Actions of an agent and their observations, as values.
//!
//! An [`Action`] is one thing to do: run a command, read, write or edit a file, and so on. An
//! [`Executor`] carries it out with the tools of a runtime and returns an [`Observation`] or an
//! [`ActionError`]. None of them knows a wire: `event` decides about JSON and texts for agents, and
//! the server that the agent is connected to decides about the status of a failure.
//!
//! Commands of one agent share one shell, so they run one after the other, in order. Everything
//! else runs beside them. A command that outlives the wait for it goes on: the next action can wait
//! again, type into it or press a key, and gets the output since then. Only a [`Cancellation`]
//! interrupts it.

mod agent_shell;
mod cancellation;
mod cells;
mod command_tracker;
mod commands;
mod error;
mod executor;
mod files;
mod grammar;
mod observation;
mod parsed_run;
mod relay;
mod request;
mod terminal_filter;
mod text_edit;
mod tokens;

pub use cancellation::Cancellation;
pub use commands::Commands;
pub use error::{ActionError, ErrorKind, FileError, FileProblem};
pub use executor::{Executor, Settings, Watch};
pub(crate) use files::Files;
pub use grammar::{Grammar, GrammarJob};
pub use observation::{
    CellObservation, CellOutcome, Completion, EditObservation, EditOutcome, NothingRunning,
    Observation, Outcome, OutputPiece, OutputSink, Page, Picture, ReadContent, Renewal,
    RunObservation, Screenshot, ShellReport,
};
pub use request::{Action, Cell, Edit, EditCommand, Read, ReadAs, Request, Run, RunIn, Write};
