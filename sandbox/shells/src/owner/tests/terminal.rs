//! A model of tmux with one pane and its recorder.

use std::collections::VecDeque;

use super::bash::{Bash, Key, Token};
use crate::{
    marker::{EndReport, Marker, Seq},
    output::index::{IndexEvent, IndexLine},
    owner::CallId,
};
use process_identity::ProcessId;

/// A command for tmux.
#[derive(Debug)]
pub(super) enum Question {
    Keys(Vec<Key>),
    KeysFor(CallId, Vec<Key>),
    Launch { seq: Seq, is_recorded: bool },
    Record,
    QueryPane,
    Resize(CallId, crate::ledger::Size),
    Kill,
}

/// The tmux server and its pane.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) is_alive: bool,
    pub(super) is_stopped: bool,
    /// The commands that tmux has not carried out, each with the number of the owner that sent it.
    pub(super) questions: VecDeque<(u32, Question)>,
    pub(super) bash: Option<Bash>,
    /// The exit code of the latest shell.
    pub(super) code: Option<i32>,
    /// Output that was not passed on to the recorder yet.
    pub(super) printed: VecDeque<Token>,
    pub(super) recorder: Option<Recording>,
}

#[derive(Debug)]
pub(super) struct Recording {
    pub(super) process: ProcessId,
    is_open: bool,
    /// tmux has disconnected it from the pane: it ends when it has processed all output.
    pub(super) is_last: bool,
    pub(super) tokens: VecDeque<Token>,
    last_start: Option<Seq>,
    last_end: Option<Seq>,
}

/// The nonces that the recorder accepts.
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

    /// Processes one piece of output. Returns whether there was something to do.
    pub(super) fn step(
        &mut self,
        digests: Digests,
        log: &mut u64,
        line: impl Fn(u64, IndexEvent) -> IndexLine,
        index: &mut Vec<IndexLine>,
    ) -> bool {
        if !self.is_open {
            self.is_open = true;
            let process = self.process;
            index.push(line(*log, IndexEvent::Opened { recorder: process }));
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
            Some(marker) => index.push(line(*log, IndexEvent::Marker(marker))),
            None => *log += 10,
        }
        true
    }
}
