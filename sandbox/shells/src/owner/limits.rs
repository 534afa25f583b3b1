//! Every time limit and retry limit of the owner.

use std::time::Duration;

/// The pause before a recheck of a shell whose report may be lost.
pub(super) const RECHECK: Duration = Duration::from_millis(500);
/// The longest pause between rechecks.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a shell may stay at its prompt after a command was sent. Long, because it may only be slow, and keys that
/// are pressed again could then become input of the command.
pub(super) const BEGIN_LIMIT: Duration = Duration::from_secs(3);
/// How often a command that has not begun is sent again.
pub(super) const RESENDS: u32 = 3;
/// How often the shell is asked for the report of a command whose start marker never arrived. The pause doubles each
/// time: about three minutes in all, since a full disk delays what the recorder has to report.
pub(super) const PATIENT_REPORT_REQUESTS: u32 = 5;
/// How often the shell is asked for the report of a command that has begun, if the shell is at its prompt.
pub(super) const REPORT_REQUESTS: u32 = 2;
/// The pause before the ledger is written again after a failure.
pub(super) const LEDGER_PAUSE: Duration = Duration::from_secs(2);
/// How long the shell may take to answer a request for its report.
pub(super) const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// How long programs of PROMPT_COMMAND may keep the terminal, and how often the owner checks. It polls, because
/// nothing signals that the foreground of a terminal has changed.
pub(super) const PROMPT_LIMIT: Duration = Duration::from_secs(2);
pub(super) const PROMPT_PAUSE: Duration = Duration::from_millis(10);
/// How long tmux may take to notice that a shell has died.
pub(super) const DEATH_LIMIT: Duration = Duration::from_secs(10);
/// The first pause between queries about a dead pane. The answer usually takes only milliseconds.
pub(super) const DEATH_PAUSE: Duration = Duration::from_millis(1);
/// How many shells in a row may die before their first prompt.
pub(super) const FAILED_STARTS: u32 = 3;
/// How long a recorder may take to open the log. The limit doubles with each attempt.
pub(super) const RECORDER_LIMIT: Duration = Duration::from_secs(2);
/// How often a recorder is started that never opens the log.
pub(super) const RECORDER_ATTEMPTS: u32 = 5;
