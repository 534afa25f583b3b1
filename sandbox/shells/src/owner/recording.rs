//! The recorder and what it writes: markers, losses, and gaps where a recorder was killed.

use std::mem;

use super::{
    Effect, Moment, Owner, keeps,
    limits::{RECORDER_ATTEMPTS, RECORDER_LIMIT},
    state::{
        Booting, Circumstances, Launching, Order, Place, Prompt, Recheck, Recorder, Running, Stage,
        State,
    },
};
use crate::{
    Result,
    marker::{EndReport, Marker, Seq},
    output::index::{Line, What},
    state::{Started, path},
};
use process_identity::ProcessId;

impl Owner {
    pub(super) fn recorded(&mut self, line: Line, at: Moment) {
        let place = Place { offset: line.offset, at: line.at };
        match line.what {
            What::Opened { recorder } => self.recorder_opened(recorder, at),
            // The end of its process follows.
            What::Closed => {}
            What::Lost { bytes } => {
                if let Some(command) = self.state.command_mut() {
                    command.lost += bytes;
                    let (seq, status) = (command.seq, command.status());
                    self.warn("output was lost", None);
                    self.effects.push(Effect::PublishJob { seq, status });
                }
            }
            What::Marker(Marker::Start { seq }) => self.start_marker(seq, place, at),
            What::Marker(Marker::End { seq, report }) => self.end_marker(seq, report, place, at),
        }
    }

    fn start_marker(&mut self, seq: Seq, place: Place, at: Moment) {
        let from = self.state.name();
        if let Some(command) = self.state.command_mut()
            && (command.seq == seq || !keeps!(self, MarkersCountForTheirCommand))
        {
            command.started = Some(Started { offset: place.offset, at: place.at });
            // Losses before it were the output of others.
            command.lost = 0;
            let (seq, status) = (command.seq, command.status());
            self.effects.push(Effect::PublishJob { seq, status });
            if let State::Running(Running { command, stage }) = &mut self.state
                && let Stage::Called { .. } | Stage::Taken { .. } = stage
            {
                let doubts = command.is_inherited && keeps!(self, RecheckInherited);
                let recheck = doubts.then(|| Recheck::soon(at.now));
                *stage = Stage::Begun { asks: 0, recheck };
                self.trace_stage(from, "start marker");
            }
            return;
        }
        self.report_predecessor(seq, place);
    }

    fn end_marker(&mut self, seq: Seq, report: EndReport, place: Place, at: Moment) {
        self.circumstances = Circumstances {
            python: report.python.clone().map(path),
            user: report.user.clone(),
            host: report.host.clone(),
        };
        let is_its_own = |wanted: Seq| wanted == seq || !keeps!(self, MarkersCountForTheirCommand);
        match &mut self.state {
            State::Running(running) if is_its_own(running.command.seq) => {
                if let State::Running(Running { command, .. }) = self.go_idle(at, "end marker") {
                    self.report_at_prompt(command, report, place);
                }
                self.publish();
            }
            State::Booting(Booting { start, .. }) if start.seq == seq => {
                let start = mem::take(start);
                self.prompt_reached(start, Prompt { report, place }, at);
            }
            // tmux has not said yet which process it is.
            State::Launching(Launching { start, prompt, .. }) if start.seq == seq => {
                *prompt = Some(Prompt { report, place });
            }
            // The shell has died after the command, not with it.
            state => {
                if let Some(command) = state.take_command_of_dead_shell(seq) {
                    self.report_at_prompt(command, report, place);
                }
            }
        }
    }

    fn recorder_opened(&mut self, recorder: ProcessId, at: Moment) {
        let before = mem::replace(&mut self.recorder, Recorder::Recording(recorder));
        match before {
            Recorder::Ordered { why: Order::WithShell, .. } => {}
            Recorder::Recording(former) if former == recorder => {}
            // From now on everything is heard; markers from before may be lost.
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
            self.order_recorder(at);
        }
    }

    /// What was printed since the recorder ended is lost, and its successor says so in the log; the rest is not.
    pub(super) fn order_recorder(&mut self, at: Moment) {
        let why = Order::AfterGap;
        let recheck_at = at.now + RECORDER_LIMIT;
        self.recorder = Recorder::Ordered { why, attempts: 1, recheck_at };
        self.effects.push(Effect::OrderRecorder);
    }

    pub(super) fn recorder_ordered(&mut self, result: Result<()>) {
        if let Err(error) = result {
            // It is ordered again when its time is over, unless the shell has ended, too.
            self.warn("tmux did not start a recorder", Some(&error));
        }
    }

    /// Orders the recorder again that has not opened the log in time: it may have been killed before.
    pub(super) fn check_recorder(&mut self, at: Moment) {
        let Recorder::Ordered { attempts, recheck_at, .. } = self.recorder else { return };
        if recheck_at > at.now || !self.state.has_shell() || !keeps!(self, RecordersAreAwaited) {
            return;
        }
        if attempts >= RECORDER_ATTEMPTS {
            self.warn("there is no recorder; commands cannot be heard", None);
            self.recorder = Recorder::Missing;
            return;
        }
        self.warn("the recorder did not open the log; it is ordered again", None);
        self.order_recorder(at);
        if let Recorder::Ordered { attempts: now, recheck_at, .. } = &mut self.recorder {
            *now = attempts + 1;
            *recheck_at = at.now + RECORDER_LIMIT * 2u32.pow(attempts);
        }
        self.note_gap(at);
    }

    /// A recorder was killed: the start or the end of the present command may be lost, or the first prompt. If its
    /// start is, its output begins with the gap.
    pub(super) fn note_gap(&mut self, at: Moment) {
        let soon = Recheck::soon(at.now);
        if let Some(command) = self.state.command_mut()
            && command.started.is_none()
        {
            command.started = Some(Started { offset: at.log_end, at: at.wall });
            let (seq, status) = (command.seq, command.status());
            self.effects.push(Effect::PublishJob { seq, status });
        }
        if !keeps!(self, RecheckAfterGap) {
            return;
        }
        match &mut self.state {
            State::Running(Running { stage, .. }) => match stage {
                // Whether it has begun, the pipe tells.
                Stage::Called { recheck_at, .. } => *recheck_at = soon.at,
                Stage::Taken { .. } => {
                    *stage = Stage::Begun { asks: 0, recheck: Some(soon) };
                }
                Stage::Begun { recheck, .. } => *recheck = Some(soon),
                Stage::GivenUp { .. } => {}
            },
            State::Booting(booting) => booting.recheck = Some(soon),
            _ => {}
        }
    }
}
