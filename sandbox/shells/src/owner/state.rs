//! The states of a shell, each with what is known in it and nothing else.

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
    /// tmux was asked for another shell in the pane and has not answered yet.
    Launching(Launching),
    /// The shell reads its start-up files.
    Booting(Booting),
    /// The shell is at its prompt.
    Idle(Idle),
    /// Text and nonces of a command are being written; the shell cannot begin it yet.
    HandingOver(HandingOver),
    /// A command was handed over and has no result yet.
    Running(Running),
    /// The shell has ended, and tmux is asked with which code.
    Burying(Burying),
    /// Everything that belongs to the shell is being ended.
    Closing(Closing),
    Over(Ended),
}

/// What a shell carries with it until its first prompt.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// The number of the start-up.
    pub(super) seq: Seq,
    /// How many shells in a row have died before their first prompt.
    pub(super) failed: u32,
    /// The command that the predecessor died with.
    pub(super) predecessor: Option<Unreported>,
    /// Commands that have come meanwhile. The first is run at the prompt.
    pub(super) waiting: Vec<(CallId, Text)>,
}

#[derive(Debug)]
pub(super) struct Launching {
    pub(super) start: Start,
    pub(super) attempt: Attempt,
    /// The first prompt, if the recorder has told of it before tmux has answered.
    pub(super) prompt: Option<Prompt>,
}

/// Launching is tried twice if tmux does not answer: its control client may just have been replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Second,
}

#[derive(Debug)]
pub(super) struct Booting {
    pub(super) start: Start,
    /// When the shell is killed because it takes too long.
    pub(super) deadline: Instant,
    /// When to look whether it is at its prompt: only where its report may be lost.
    pub(super) recheck: Option<Recheck>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Recheck {
    pub(super) at: Instant,
    /// How long until the one after.
    pub(super) pause: Duration,
}

impl Recheck {
    pub(super) fn soon(now: Instant) -> Self {
        Self { at: now + RECHECK, pause: RECHECK }
    }

    /// The one after, less and less often: a key that interrupts may reach its command late.
    pub(super) fn after(self, now: Instant) -> Self {
        let pause = (self.pause * 2).min(LONGEST_PAUSE);
        Self { at: now + pause, pause }
    }
}

#[derive(Debug)]
pub(super) struct Idle {
    pub(super) since: Instant,
    /// Callers that want the prompt, in the order of their arrival.
    pub(super) claims: VecDeque<Claim>,
    /// When to look again whether the terminal is free for the first of them.
    pub(super) recheck_at: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Claim {
    pub(super) call: CallId,
    pub(super) wish: Wish,
}

#[derive(Debug)]
pub(super) enum Wish {
    Run(Text),
    Export,
}

#[derive(Debug)]
pub(super) struct HandingOver {
    pub(super) seq: Seq,
    pub(super) call: CallId,
    /// Since when the shell has been at its prompt.
    pub(super) idle_since: Instant,
    /// Callers that get the prompt if this command does not take it.
    pub(super) claims: VecDeque<Claim>,
}

/// A command without a result.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) seq: Seq,
    /// Its start marker. Where that may be lost with a recorder, the place of the gap.
    pub(super) started: Option<Started>,
    /// Bytes of its output that could not be kept.
    pub(super) lost: u64,
    /// Whether an earlier owner has begun it, which may have changed the nonce of its end before it was killed.
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

/// What is known about the beginning of a command.
#[derive(Debug)]
pub(super) enum Stage {
    /// The key was pressed. Whether the shell has begun is not known.
    Called { resends: u32, recheck_at: Instant },
    /// The shell has taken the nonces, so it has begun, but its start marker has not come. The recorder may only be
    /// slow (a full disk, a stopped process).
    Taken { asks: u32, recheck: Recheck },
    /// It has begun, by its start marker, or because its start marker may be lost.
    Begun {
        /// How often the shell was asked for its report.
        asks: u32,
        /// When to look whether the shell is at its prompt although no report has come: only where that may be lost.
        recheck: Option<Recheck>,
    },
    /// Nothing will be heard of its end. It is reported as soon as the ledger says so, too: the next owner must not
    /// tell anything else.
    GivenUp {
        /// When the ledger is tried again, if it could not be written.
        recheck: Option<Recheck>,
    },
}

/// A command whose shell has died. It is reported when the next shell says its first word, because only then
/// everything before that word is known to be in the log.
#[derive(Debug)]
pub(super) struct Unreported {
    pub(super) command: Command,
    pub(super) exit_code: i32,
}

#[derive(Debug)]
pub(super) struct Burying {
    pub(super) corpse: Corpse,
    pub(super) waiting: Vec<(CallId, Text)>,
    /// When the exit code counts as unknowable.
    pub(super) deadline: Instant,
    pub(super) asking: Asking,
    /// How long until the next question.
    pub(super) pause: Duration,
}

/// Whether tmux was asked about the pane.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asking {
    Asked,
    At(Instant),
}

/// What the dead shell was doing.
#[derive(Debug)]
pub(super) enum Corpse {
    Starting { failed: u32, predecessor: Option<Unreported> },
    Idle,
    Running(Command),
}

#[derive(Debug)]
pub(super) struct Closing {
    pub(super) ended: Ended,
    /// What the status shows until callers are answered.
    pub(super) phase: Phase,
    /// The command that has no result yet, and the code of its shell.
    pub(super) unreported: Option<Unreported>,
    /// Callers that wait for the end.
    pub(super) callers: Vec<CallId>,
    pub(super) progress: Tidying,
}

/// How far the end of a shell has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tidying {
    /// Callers are answered when nothing is left.
    Awaited,
    /// tmux does not answer: callers were answered, and the rest is done in the background.
    InBackground,
}

/// The first prompt of a shell, as its end marker tells it.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) report: EndReport,
    pub(super) place: Place,
}

/// Where in the log and when a marker was recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) at: std::time::SystemTime,
}

/// The recorder of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorder {
    /// It has opened the log.
    Recording(ProcessId),
    /// tmux was asked to start it, and it has not opened the log yet.
    Ordered { why: Order, attempts: u32, recheck_at: Instant },
    /// There is none, and none was ordered.
    Missing,
}

/// Why a recorder was ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Together with its shell: it hears everything.
    WithShell,
    /// After another one was killed: markers may be lost.
    AfterGap,
}

/// What the shell has told of itself last, for commands of which it tells nothing.
#[derive(Debug, Default)]
pub(super) struct Circumstances {
    pub(super) python: Option<PathBuf>,
    pub(super) user: String,
    pub(super) host: String,
}

impl State {
    /// For traces.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Launching(_) => "launching",
            Self::Booting(_) => "booting",
            Self::Idle(_) => "idle",
            Self::HandingOver(_) => "handing over",
            Self::Running(Running { stage: Stage::Called { .. }, .. }) => "called",
            Self::Running(Running { stage: Stage::Taken { .. }, .. }) => "taken",
            Self::Running(Running { stage: Stage::Begun { .. }, .. }) => "begun",
            Self::Running(Running { stage: Stage::GivenUp { .. }, .. }) => "given up",
            Self::Burying(_) => "burying",
            Self::Closing(_) => "closing",
            Self::Over(_) => "over",
        }
    }

    /// The command that it is about, for traces.
    pub(super) fn seq(&self) -> Option<Seq> {
        match self {
            Self::Launching(Launching { start, .. }) | Self::Booting(Booting { start, .. }) => {
                Some(start.seq)
            }
            Self::HandingOver(handing) => Some(handing.seq),
            Self::Running(running) => Some(running.command.seq),
            Self::Burying(Burying { corpse: Corpse::Running(command), .. }) => Some(command.seq),
            Self::Idle(_) | Self::Burying(_) | Self::Closing(_) | Self::Over(_) => None,
        }
    }

    /// The command that has no result yet, be its shell alive or dead.
    pub(super) fn command_mut(&mut self) -> Option<&mut Command> {
        match self {
            Self::Running(running) => Some(&mut running.command),
            Self::Launching(Launching { start, .. }) | Self::Booting(Booting { start, .. }) => {
                start.predecessor.as_mut().map(|unreported| &mut unreported.command)
            }
            Self::Burying(Burying { corpse, .. }) => match corpse {
                Corpse::Running(command) => Some(command),
                Corpse::Starting { predecessor, .. } => {
                    predecessor.as_mut().map(|unreported| &mut unreported.command)
                }
                Corpse::Idle => None,
            },
            Self::Closing(closing) => {
                closing.unreported.as_mut().map(|unreported| &mut unreported.command)
            }
            Self::Idle(_) | Self::HandingOver(_) | Self::Over(_) => None,
        }
    }

    /// Takes out the command with this number that was left by a shell that has died or is being closed.
    pub(super) fn take_command_of_dead_shell(&mut self, seq: Seq) -> Option<Command> {
        let is_it = |it: &mut Unreported| it.command.seq == seq;
        let unreported = match self {
            Self::Launching(Launching { start, .. }) | Self::Booting(Booting { start, .. }) => {
                &mut start.predecessor
            }
            Self::Burying(Burying { corpse: Corpse::Starting { predecessor, .. }, .. }) => {
                predecessor
            }
            Self::Burying(Burying { corpse, .. }) => {
                return match std::mem::replace(corpse, Corpse::Idle) {
                    Corpse::Running(command) if command.seq == seq => Some(command),
                    other => {
                        *corpse = other;
                        None
                    }
                };
            }
            Self::Closing(closing) => &mut closing.unreported,
            Self::Idle(_) | Self::HandingOver(_) | Self::Running(_) | Self::Over(_) => return None,
        };
        unreported.take_if(is_it).map(|it| it.command)
    }

    /// Whether a shell is there that a recorder should listen to.
    pub(super) fn has_shell(&self) -> bool {
        match self {
            Self::Booting(_) | Self::Idle(_) | Self::HandingOver(_) | Self::Running(_) => true,
            Self::Launching(_) | Self::Burying(_) | Self::Closing(_) | Self::Over(_) => false,
        }
    }
}
