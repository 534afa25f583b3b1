//! A model of tmux with one pane and its recorder.

use std::collections::VecDeque;

use super::bash::{Bash, Key, Token};
use crate::{
    marker::{EndReport, Marker, Seq},
    output::index::{Line, What},
    owner::CallId,
};
use process_identity::ProcessId;

/// What tmux was asked.
#[derive(Debug)]
pub(super) enum Question {
    Keys(Vec<Key>),
    KeysFor(CallId, Vec<Key>),
    Launch { seq: Seq, is_recorded: bool },
    Record,
    AskPane,
    Resize(CallId, crate::ledger::Size),
    Kill,
}

/// The server.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) is_alive: bool,
    pub(super) is_stopped: bool,
    /// With the number of the owner that asks.
    pub(super) questions: VecDeque<(u32, Question)>,
    pub(super) bash: Option<Bash>,
    /// How the latest shell has ended.
    pub(super) code: Option<i32>,
    /// Printed, and not passed on to the recorder.
    pub(super) printed: VecDeque<Token>,
    pub(super) recorder: Option<Recording>,
}

#[derive(Debug)]
pub(super) struct Recording {
    pub(super) process: ProcessId,
    is_open: bool,
    /// tmux has taken the pane from it: it ends when it has nothing left.
    pub(super) is_last: bool,
    pub(super) tokens: VecDeque<Token>,
    last_start: Option<Seq>,
    last_end: Option<Seq>,
}

/// The nonces by which the recorder confirms markers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digests {
    pub(super) seq: Seq,
    pub(super) is_command: bool,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Recording {
    pub(super) fn new(process: ProcessId) -> Self {
        Self {
            process,
            is_open: false,
            is_last: false,
            tokens: VecDeque::new(),
            last_start: None,
            last_end: None,
        }
    }

    /// Writes one line or one piece of output; says whether there was something to do.
    pub(super) fn step(
        &mut self,
        digests: Digests,
        log: &mut u64,
        line: impl Fn(u64, What) -> Line,
        index: &mut Vec<Line>,
    ) -> bool {
        if !self.is_open {
            self.is_open = true;
            let process = self.process;
            index.push(line(*log, What::Opened { recorder: process }));
            return true;
        }
        let Some(token) = self.tokens.pop_front() else { return false };
        let marker = match token {
            Token::Start { seq, value } if (seq, value) == (digests.seq, digests.start) => {
                (self.last_start.replace(seq) != Some(seq)).then_some(Marker::Start { seq })
            }
            Token::End { seq, value, code } if (seq, value) == (digests.seq, digests.end) => {
                let report = EndReport { exit_code: code, ..EndReport::default() };
                (self.last_end.replace(seq) != Some(seq)).then_some(Marker::End { seq, report })
            }
            _ => None,
        };
        match marker {
            Some(marker) => index.push(line(*log, What::Marker(marker))),
            None => *log += 10,
        }
        true
    }
}
