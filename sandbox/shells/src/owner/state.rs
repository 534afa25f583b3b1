//! The states of a shell. Each holds exactly the data that is valid in it.

use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    event::{CallId, Text},
    limits::{LONGEST_PAUSE, RECHECK},
};
use crate::{
    marker::{EndReport, Seq},
    state::{Ended, JobStatus, Phase, Started},
};
use process_identity::ProcessId;

/// What the shell is doing, as far as its owner knows.
#[derive(Debug)]
pub(super) enum State {
    /// tmux was asked to start another shell in the pane and has not answered yet.
    Launching(Launching),
    /// The shell is reading its start-up files.
    Booting(Booting),
    /// The shell is at its prompt.
    Idle(Idle),
    /// The text and the nonces of a command are being written; the shell cannot begin it yet.
    HandingOver(HandingOver),
    /// A command was handed over and has no result yet.
    Running(Running),
    /// The shell has ended, and tmux is asked for its exit code.
    AwaitingExitCode(AwaitingExitCode),
    /// The processes and files of the shell are being removed.
    Closing(Closing),
    Closed(Ended),
}

/// The data of a shell that has not reached its first prompt.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// The number of the start-up, from the same sequence as the numbers of commands.
    pub(super) seq: Seq,
    /// How many shells in a row died before their first prompt.
    pub(super) failed: u32,
    /// The command that was running when the previous shell died.
    pub(super) predecessor: Option<Unreported>,
    /// Commands requested in the meantime. The first one runs at the prompt.
    pub(super) waiting: Vec<(CallId, Text)>,
}

#[derive(Debug)]
pub(super) struct Launching {
    pub(super) start: Start,
    pub(super) attempt: Attempt,
    /// The first prompt, if the recorder reported it before tmux answered.
    pub(super) prompt: Option<Prompt>,
}

/// Counts attempts to launch. The owner tries twice if tmux does not answer, since its control client may just have
/// been replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Second,
}

#[derive(Debug)]
pub(super) struct Booting {
    pub(super) start: Start,
    /// When the shell is killed because its start takes too long.
    pub(super) deadline: Instant,
    /// When to check whether it is at its prompt. Set only if its report may be lost.
    pub(super) recheck: Option<Recheck>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Recheck {
    pub(super) at: Instant,
    /// The pause before the next recheck.
    pub(super) pause: Duration,
}

impl Recheck {
    pub(super) fn soon(now: Instant) -> Self {
        Self { at: now + RECHECK, pause: RECHECK }
    }

    /// The next recheck, after a pause twice as long: a key that interrupts may reach its command late.
    pub(super) fn after(self, now: Instant) -> Self {
        let pause = (self.pause * 2).min(LONGEST_PAUSE);
        Self { at: now + pause, pause }
    }
}

#[derive(Debug)]
pub(super) struct Idle {
    pub(super) since: Instant,
    /// Callers that wait for the prompt, in order of arrival.
    pub(super) claims: VecDeque<Claim>,
    /// When to check again whether the terminal is free for the first caller.
    pub(super) recheck_at: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Claim {
    pub(super) call: CallId,
    pub(super) purpose: Purpose,
}

#[derive(Debug)]
pub(super) enum Purpose {
    Run(Text),
    Export,
}

#[derive(Debug)]
pub(super) struct HandingOver {
    pub(super) seq: Seq,
    pub(super) call: CallId,
    /// When the shell reached its prompt.
    pub(super) idle_since: Instant,
    /// Callers that get the prompt if this command is not handed over.
    pub(super) claims: VecDeque<Claim>,
}

/// A command that has no result yet.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) seq: Seq,
    /// The position of its start marker. If the marker may be lost with a recorder, the position of the gap.
    pub(super) started: Option<Started>,
    /// Bytes of its output that could not be recorded.
    pub(super) lost: u64,
    /// Whether an earlier owner handed it over. That owner may have changed the end nonce before it was killed.
    pub(super) is_inherited: bool,
}

impl Command {
    pub(super) fn new(seq: Seq) -> Self {
        Self { seq, started: None, lost: 0, is_inherited: false }
    }

    pub(super) fn status(&self) -> JobStatus {
        JobStatus { started: self.started, lost: self.lost, result: None }
    }
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) command: Command,
    pub(super) stage: Stage,
}

/// What the owner knows about the start of a command.
#[derive(Debug)]
pub(super) enum Stage {
    /// The run key was pressed. It is not known whether the shell has begun.
    Sent { resends: u32, recheck_at: Instant },
    /// The shell has taken the nonces, so it has begun, but the start marker has not arrived. The recorder may only
    /// be slow (a full disk, a stopped process).
    NoncesTaken { report_requests: u32, recheck: Recheck },
    /// The command has begun: its start marker arrived, or may be lost.
    Begun {
        /// How often the shell was asked for its report.
        report_requests: u32,
        /// When to check whether the shell is at its prompt although no report arrived. Set only if the report may be
        /// lost.
        recheck: Option<Recheck>,
    },
    /// The end of the command will never be reported. The owner reports the command as soon as the ledger says the
    /// same, so that the next owner cannot report anything else.
    GivenUp {
        /// When to retry the ledger, if it could not be written.
        recheck: Option<Recheck>,
    },
}

/// A command whose shell has died. It is reported when the next shell prints its first marker, because only then all
/// earlier output is known to be in the log.
#[derive(Debug)]
pub(super) struct Unreported {
    pub(super) command: Command,
    pub(super) exit_code: i32,
}

#[derive(Debug)]
pub(super) struct AwaitingExitCode {
    pub(super) activity: LastActivity,
    pub(super) waiting: Vec<(CallId, Text)>,
    /// When the owner stops asking and treats the exit code as unknown.
    pub(super) deadline: Instant,
    pub(super) query: PaneQuery,
    /// The pause before the next query.
    pub(super) pause: Duration,
}

/// Whether a query about the pane is on its way, or when the next one is due.
#[derive(Debug, Clone, Copy)]
pub(super) enum PaneQuery {
    Sent,
    DueAt(Instant),
}

/// What the shell was doing when it died.
#[derive(Debug)]
pub(super) enum LastActivity {
    Starting { failed: u32, predecessor: Option<Unreported> },
    Idle,
    Running(Command),
}

#[derive(Debug)]
pub(super) struct Closing {
    pub(super) ended: Ended,
    /// The phase that the status shows until callers are answered.
    pub(super) phase: Phase,
    /// The command that has no result yet, and the exit code of its shell.
    pub(super) unreported: Option<Unreported>,
    /// Callers that wait until the shell is closed.
    pub(super) callers: Vec<CallId>,
    pub(super) progress: Cleanup,
}

/// Whether callers of `close` still wait for the cleanup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleanup {
    /// Callers are answered when the cleanup is complete.
    Awaited,
    /// tmux does not answer: callers were answered, and the cleanup continues in the background.
    InBackground,
}

/// The first prompt of a shell, as reported by the end marker of its start-up.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) report: EndReport,
    pub(super) position: LogPosition,
}

/// The log offset and the time at which a marker was recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogPosition {
    pub(super) offset: u64,
    pub(super) at: std::time::SystemTime,
}

/// The recorder of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorder {
    /// It has opened the log.
    Recording(ProcessId),
    /// tmux was asked to start it, and it has not opened the log yet.
    Starting { why: RecorderStart, attempts: u32, recheck_at: Instant },
    /// There is none, and tmux was not asked for one.
    Missing,
}

/// Why a recorder was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecorderStart {
    /// Together with its shell: it receives everything that the shell prints.
    WithShell,
    /// To replace one that was killed: markers may be lost.
    AfterGap,
}

/// What the shell last reported about itself, for results of commands that have no report of their own.
#[derive(Debug, Default)]
pub(super) struct LastReport {
    pub(super) python: Option<PathBuf>,
    pub(super) user: String,
    pub(super) machine: String,
}

impl State {
    /// The name of the state in traces.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Launching(_) => "launching",
            Self::Booting(_) => "booting",
            Self::Idle(_) => "idle",
            Self::HandingOver(_) => "handing over",
            Self::Running(Running { stage: Stage::Sent { .. }, .. }) => "sent",
            Self::Running(Running { stage: Stage::NoncesTaken { .. }, .. }) => "nonces taken",
            Self::Running(Running { stage: Stage::Begun { .. }, .. }) => "begun",
            Self::Running(Running { stage: Stage::GivenUp { .. }, .. }) => "given up",
            Self::AwaitingExitCode(_) => "awaiting exit code",
            Self::Closing(_) => "closing",
            Self::Closed(_) => "closed",
        }
    }

    /// The number of the command or start-up that this state is about.
    pub(super) fn seq(&self) -> Option<Seq> {
        match self {
            Self::Launching(Launching { start, .. }) | Self::Booting(Booting { start, .. }) => {
                Some(start.seq)
            }
            Self::HandingOver(handing) => Some(handing.seq),
            Self::Running(running) => Some(running.command.seq),
            Self::AwaitingExitCode(AwaitingExitCode {
                activity: LastActivity::Running(command),
                ..
            }) => Some(command.seq),
            Self::Idle(_) | Self::AwaitingExitCode(_) | Self::Closing(_) | Self::Closed(_) => None,
        }
    }

    /// The command that has no result yet, whether its shell is alive or dead.
    pub(super) fn command_mut(&mut self) -> Option<&mut Command> {
        match self {
            Self::Running(running) => Some(&mut running.command),
            Self::Launching(Launching { start, .. }) | Self::Booting(Booting { start, .. }) => {
                start.predecessor.as_mut().map(|unreported| &mut unreported.command)
            }
            Self::AwaitingExitCode(AwaitingExitCode { activity, .. }) => match activity {
                LastActivity::Running(command) => Some(command),
                LastActivity::Starting { predecessor, .. } => {
                    predecessor.as_mut().map(|unreported| &mut unreported.command)
                }
                LastActivity::Idle => None,
            },
            Self::Closing(closing) => {
                closing.unreported.as_mut().map(|unreported| &mut unreported.command)
            }
            Self::Idle(_) | Self::HandingOver(_) | Self::Closed(_) => None,
        }
    }

    /// Removes and returns the command with this number if its shell has died or is being closed.
    pub(super) fn take_command_of_dead_shell(&mut self, seq: Seq) -> Option<Command> {
        let is_it = |it: &mut Unreported| it.command.seq == seq;
        let unreported = match self {
            Self::Launching(Launching { start, .. }) | Self::Booting(Booting { start, .. }) => {
                &mut start.predecessor
            }
            Self::AwaitingExitCode(AwaitingExitCode {
                activity: LastActivity::Starting { predecessor, .. },
                ..
            }) => predecessor,
            Self::AwaitingExitCode(AwaitingExitCode { activity, .. }) => {
                return match std::mem::replace(activity, LastActivity::Idle) {
                    LastActivity::Running(command) if command.seq == seq => Some(command),
                    other => {
                        *activity = other;
                        None
                    }
                };
            }
            Self::Closing(closing) => &mut closing.unreported,
            Self::Idle(_) | Self::HandingOver(_) | Self::Running(_) | Self::Closed(_) => {
                return None;
            }
        };
        unreported.take_if(is_it).map(|it| it.command)
    }

    /// Whether there is a shell that needs a recorder.
    pub(super) fn has_shell(&self) -> bool {
        match self {
            Self::Booting(_) | Self::Idle(_) | Self::HandingOver(_) | Self::Running(_) => true,
            Self::Launching(_) | Self::AwaitingExitCode(_) | Self::Closing(_) | Self::Closed(_) => {
                false
            }
        }
    }
}
