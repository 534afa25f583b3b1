//! Actions of an agent, and what it learns from them, as values.
//!
//! An [`Action`] is one thing to do: run a command, read, write or edit a file, and so on. An
//! [`Executor`] carries it out with the tools of a runtime and answers with an [`Observation`] or an
//! [`ActionError`]. None of them knows a wire: `event` decides how they look in JSON and which sentences
//! an agent reads, and the edge that speaks to the agent decides which status a failure has.
//!
//! Commands of one agent share one shell, so they run one after the other, in the order in which
//! they came. Everything else runs beside them. A command that outlives the wait for it goes on: the
//! next action can wait again, type into it or press a key, and gets what was printed since. Only
//! a [`Cancellation`] interrupts it.

mod agent_shell;
mod ask;
mod cancellation;
mod cells;
mod commands;
mod conversation;
mod error;
mod executor;
mod files;
mod harmless;
mod observation;
mod relay;
mod request;
mod text_edit;
mod tokens;

pub use cancellation::Cancellation;
pub use error::{ActionError, ErrorKind, FileError, FileProblem};
pub use executor::{Executor, Settings, Watch};
pub(crate) use files::Files;
pub use observation::{
    CellObservation, CellOutcome, Completion, EditObservation, Edition, NothingRunning,
    Observation, Outcome, OutputPiece, OutputSink, Page, Picture, ReadContent, Renewal,
    RunObservation, Screenshot, ShellReport,
};
pub use request::{Action, Cell, Edit, EditCommand, Read, ReadAs, Request, Run, RunIn, Write};
