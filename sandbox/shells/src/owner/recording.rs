//! Handles the recorder and the lines of its index: markers, losses, and gaps where a recorder was killed.

use std::mem;

use super::{
    Effect, Moment, Owner, in_force,
    limits::{RECORDER_ATTEMPTS, RECORDER_LIMIT},
    state::{
        Booting, LastReport, Launching, LogPosition, Prompt, Recheck, Recorder, RecorderStart,
        Running, Stage, State,
    },
};
use crate::{
    Result,
    marker::{EndReport, Marker, Seq},
    output::index::{IndexEvent, IndexLine},
    state::{Started, path},
};
use process_identity::ProcessId;

impl Owner {
    pub(super) fn recorded(&mut self, line: IndexLine, at: Moment) {
        let position = LogPosition { offset: line.offset, at: line.at };
        match line.event {
            IndexEvent::Opened { recorder } => self.recorder_opened(recorder, at),
            // Nothing to do: the end of the recorder's process is reported separately.
            IndexEvent::Closed => {}
            IndexEvent::Lost { bytes } => {
                if let Some(command) = self.state.command_mut() {
                    command.lost += bytes;
                    let (seq, status) = (command.seq, command.status());
                    self.warn("output was lost", None);
                    self.effects.push(Effect::PublishJob { seq, status });
                }
            }
            IndexEvent::Marker(Marker::Start { seq }) => self.start_marker(seq, position, at),
            IndexEvent::Marker(Marker::End { seq, report }) => {
                self.end_marker(seq, report, position, at);
            }
        }
    }

    fn start_marker(&mut self, seq: Seq, position: LogPosition, at: Moment) {
        let from = self.state.name();
        if let Some(command) = self.state.command_mut()
            && (command.seq == seq || !in_force!(self, MarkersCountForTheirCommand))
        {
            command.started = Some(Started { offset: position.offset, at: position.at });
            // Losses before the start marker belong to earlier output.
            command.lost = 0;
            let (seq, status) = (command.seq, command.status());
            self.effects.push(Effect::PublishJob { seq, status });
            if let State::Running(Running { command, stage }) = &mut self.state
                && let Stage::Sent { .. } | Stage::NoncesTaken { .. } = stage
            {
                let doubts = command.is_inherited && in_force!(self, RecheckInherited);
                let recheck = doubts.then(|| Recheck::soon(at.now));
                *stage = Stage::Begun { report_requests: 0, recheck };
                self.trace_transition(from, "start marker");
            }
            return;
        }
        self.report_predecessor(seq, position);
    }

    fn end_marker(&mut self, seq: Seq, report: EndReport, position: LogPosition, at: Moment) {
        self.last_report = LastReport {
            python: report.python.clone().map(path),
            user: report.user.clone(),
            machine: report.machine.clone(),
        };
        let is_its_own =
            |wanted: Seq| wanted == seq || !in_force!(self, MarkersCountForTheirCommand);
        match &mut self.state {
            State::Running(running) if is_its_own(running.command.seq) => {
                if let State::Running(Running { command, .. }) = self.go_idle(at, "end marker") {
                    self.report_at_prompt(command, report, position);
                }
                self.publish();
            }
            State::Booting(Booting { start, .. }) if start.seq == seq => {
                let start = mem::take(start);
                self.prompt_reached(start, Prompt { report, position }, at);
            }
            // tmux has not reported yet which process the shell is.
            State::Launching(Launching { start, prompt, .. }) if start.seq == seq => {
                *prompt = Some(Prompt { report, position });
            }
            // The shell died after the command, not during it.
            state => {
                if let Some(command) = state.take_command_of_dead_shell(seq) {
                    self.report_at_prompt(command, report, position);
                }
            }
        }
    }

    fn recorder_opened(&mut self, recorder: ProcessId, at: Moment) {
        let before = mem::replace(&mut self.recorder, Recorder::Recording(recorder));
        match before {
            Recorder::Starting { why: RecorderStart::WithShell, .. } => {}
            Recorder::Recording(former) if former == recorder => {}
            // The new recorder receives everything from now on; earlier markers may be lost.
            _ => self.note_gap(at),
        }
    }

    pub(super) fn recorder_ended(&mut self, recorder: ProcessId, at: Moment) {
        if self.recorder != Recorder::Recording(recorder) {
            return;
        }
        self.recorder = Recorder::Missing;
        self.warn("the recorder has ended", None);
        self.note_gap(at);
        if self.state.has_shell() {
            self.start_recorder(at);
        }
    }

    /// Asks tmux for another recorder. Output since the end of the previous one is lost, and the new one says so in
    /// the log.
    pub(super) fn start_recorder(&mut self, at: Moment) {
        let why = RecorderStart::AfterGap;
        let recheck_at = at.now + RECORDER_LIMIT;
        self.recorder = Recorder::Starting { why, attempts: 1, recheck_at };
        self.effects.push(Effect::StartRecorder);
    }

    pub(super) fn recorder_started(&mut self, result: Result<()>) {
        if let Err(error) = result {
            // `check_recorder` retries when the limit is over, unless the shell has ended as well.
            self.warn("tmux did not start a recorder", Some(&error));
        }
    }

    /// Starts another recorder if the last one has not opened the log in time: it may have been killed before.
    pub(super) fn check_recorder(&mut self, at: Moment) {
        let Recorder::Starting { attempts, recheck_at, .. } = self.recorder else { return };
        if recheck_at > at.now || !self.state.has_shell() || !in_force!(self, RecordersAreAwaited) {
            return;
        }
        if attempts >= RECORDER_ATTEMPTS {
            self.warn("no recorder could be started; commands cannot report their end", None);
            self.recorder = Recorder::Missing;
            return;
        }
        self.warn("the recorder did not open the log in time; starting another", None);
        self.start_recorder(at);
        if let Recorder::Starting { attempts: now, recheck_at, .. } = &mut self.recorder {
            *now = attempts + 1;
            *recheck_at = at.now + RECORDER_LIMIT * 2u32.pow(attempts);
        }
        self.note_gap(at);
    }

    /// Handles a gap in the recording: the start or end marker of the present command, or the first prompt, may be
    /// lost. If the start marker is lost, the output of the command begins at the gap.
    pub(super) fn note_gap(&mut self, at: Moment) {
        let from = self.state.name();
        let soon = Recheck::soon(at.now);
        if let Some(command) = self.state.command_mut()
            && command.started.is_none()
        {
            command.started = Some(Started { offset: at.log_end, at: at.wall });
            let (seq, status) = (command.seq, command.status());
            self.effects.push(Effect::PublishJob { seq, status });
        }
        if !in_force!(self, RecheckAfterGap) {
            return;
        }
        match &mut self.state {
            State::Running(Running { stage, .. }) => match stage {
                // The nonce pipe shows whether it has begun.
                Stage::Sent { recheck_at, .. } => *recheck_at = soon.at,
                Stage::NoncesTaken { .. } => {
                    *stage = Stage::Begun { report_requests: 0, recheck: Some(soon) };
                    self.trace_transition(from, "the start marker may be lost in a gap");
                }
                Stage::Begun { recheck, .. } => *recheck = Some(soon),
                Stage::GivenUp { .. } => {}
            },
            State::Booting(booting) => booting.recheck = Some(soon),
            _ => {}
        }
    }
}
