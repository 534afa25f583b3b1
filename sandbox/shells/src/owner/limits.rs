//! How long and how often: every limit by which the owner decides.

use std::time::Duration;

/// How long until a look at a shell of which something may be lost.
pub(super) const RECHECK: Duration = Duration::from_millis(500);
/// The longest pause between such looks.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a shell that was given a command may stay at its prompt: long, since it may only be slow, and what is
/// typed again then could meet the command instead.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(3);
/// How often a shell that has not begun is called again.
pub(super) const RESENDS: u32 = 3;
/// How often a shell that has begun unheard is asked for its report, each time after twice as long: about three
/// minutes in all, since a full disk holds back what the recorder has to tell.
pub(super) const PATIENT_ASKS: u32 = 5;
/// How often a shell that has begun, and is at its prompt, is asked for its report.
pub(super) const ASKS: u32 = 2;
/// How long until the ledger is tried again that could not be written.
pub(super) const LEDGER_PAUSE: Duration = Duration::from_secs(2);
/// How long a shell that was asked for its report may take.
pub(super) const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// How long programs of PROMPT_COMMAND may have the terminal, and how often that is looked at: nothing tells when a
/// terminal changes hands.
pub(super) const PROMPT_LIMIT: Duration = Duration::from_secs(2);
pub(super) const PROMPT_PAUSE: Duration = Duration::from_millis(10);
/// How long tmux may take to notice that a shell has died.
pub(super) const DEATH_LIMIT: Duration = Duration::from_secs(10);
/// The first pause between questions about a dead pane; it is a matter of milliseconds as a rule.
pub(super) const DEATH_PAUSE: Duration = Duration::from_millis(1);
/// Shells that may die in a row before their first prompt.
pub(super) const FAILED_STARTS: u32 = 3;
/// How long a recorder may take to open the log, at first; each time twice as long.
pub(super) const RECORDER_LIMIT: Duration = Duration::from_secs(2);
/// How often a recorder is ordered that never opens the log.
pub(super) const RECORDER_ATTEMPTS: u32 = 5;
