//! What an agent can do, and what it learns from it, as values.
//!
//! An [`Action`] is one thing to do: run a command, read, write or edit a file, and so on. An
//! [`Executor`] carries it out on the shells and files of this machine and answers with an
//! [`Observation`] or an [`ActionError`]. None of them knows a wire: how they look in JSON, which
//! sentences an agent is told is decided in `event`, and which status a failure has by the edge that
//! speaks to the agent.
//!
//! Commands of one agent share one shell, so they run one after the other, in the order in which
//! they came. Everything else runs beside them. A command that outlives the wait for it goes on: the
//! next action can wait again, type into it or press a key, and gets what was printed since. Only
//! a [`CallOff`] interrupts it.

mod call_off;
mod commands;
mod conversation;
mod error;
mod executor;
mod follow;
mod harmless;
mod ipython;
mod observation;
mod request;
mod screen;
mod text_files;
mod tokens;

pub use call_off::CallOff;
pub use error::{ActionError, ErrorKind};
pub use executor::{Executor, Settings, ShellSource, Watch};
pub use ipython::KernelSettings;
pub use observation::{
    CellObservation, CellOutcome, Completion, EditObservation, Edition, NothingRunning,
    Observation, Outcome, OutputPiece, OutputSink, Page, Picture, ReadContent, Renewal,
    RunObservation, Screenshot, ShellReport,
};
pub(crate) use text_files::{edit, read};

pub use request::{Action, Cell, Edit, EditCommand, Read, ReadAs, Request, Run, RunIn, Write};
