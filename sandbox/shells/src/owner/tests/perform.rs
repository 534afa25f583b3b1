//! Carries out the owner's effects in the simulated world, and the commands of the simulated tmux.

use super::{
    bash::{Bash, Key, Mode, Nonce},
    terminal::{Question, Recording},
    world::{Check, World},
};
use crate::{
    Error,
    marker::Kind,
    owner::{
        Effect, Event, Finding, Inspection, OwnKeys, PaneStatus, PipeContent, ReadMode, TextState,
    },
};

fn refused() -> Error {
    Error::TmuxRefused { command: "simulated".into(), reason: "no such pane".into() }
}

fn full() -> Error {
    Error::io("writing")(std::io::Error::from(std::io::ErrorKind::StorageFull))
}

impl World {
    fn written(&self) -> Result<(), Error> {
        if self.is_disk_full { Err(full()) } else { Ok(()) }
    }

    fn ask_tmux(&mut self, question: Question) -> Check {
        self.terminal.questions.push_back((self.life, question));
        if self.terminal.is_alive { Ok(()) } else { self.fail_questions() }
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Result<Option<Event>, String> {
        let event = match effect {
            Effect::Inspect { seq, inspection } => {
                Some(Event::Inspected { seq, finding: self.inspect(inspection) })
            }
            Effect::FindShell => {
                self.terminal.bash.as_ref().map(|bash| Event::ShellFound(bash.leader))
            }
            Effect::WriteText { seq, call, .. } if self.gone.remove(&call) => {
                self.calls.remove(&call);
                Some(Event::TextWritten { seq, result: Ok(TextState::Abandoned) })
            }
            Effect::WriteText { seq, text, .. } => {
                let result = self.written();
                if result.is_ok() {
                    self.text = Self::program(&text);
                }
                let event = Event::TextWritten { seq, result: result.map(|()| TextState::Wanted) };
                // Stands for a long text, which is written on another thread.
                if self.text.id.is_multiple_of(5) {
                    self.pending.push(event);
                    None
                } else {
                    Some(event)
                }
            }
            Effect::WriteNonces { seq, kind } => {
                let result = self.written();
                if result.is_ok() {
                    self.write_nonces(seq, kind);
                    if kind == Kind::Command {
                        self.handed_over.insert(seq, self.text.id);
                    }
                }
                Some(Event::NoncesWritten { seq, result })
            }
            Effect::TakeNoncesBack { seq, why } => {
                let is_start = |nonce: &Nonce| matches!(nonce, Nonce::Start { .. });
                let has_start = self.pipe.iter().any(is_start);
                let found = if has_start { PipeContent::Nonces } else { PipeContent::Nothing };
                self.pipe.clear();
                Some(Event::NoncesTakenBack { seq, found, why })
            }
            Effect::RenewEndNonce => {
                if !self.is_disk_full {
                    let value = self.fresh();
                    self.digests.end = value;
                    self.pipe.push_back(Nonce::End { seq: self.digests.seq, value });
                }
                None
            }
            Effect::ProbeStartingShell { seq } => {
                if !self.is_disk_full {
                    self.text = super::bash::Program { id: 0, kind: super::bash::Kind::Nothing };
                    self.pipe.clear();
                    self.write_nonces(seq, Kind::StartUp);
                    self.ask_tmux(Question::Keys(vec![Key::Run]))?;
                }
                None
            }
            Effect::WriteLedger { entry, after } => {
                let result = self.written();
                if result.is_ok() && self.entry.is_some() {
                    self.entry = Some(*entry);
                }
                self.pending.push(Event::LedgerWritten { after, result });
                None
            }
            Effect::LaunchShell { seq, is_recorded, .. } => {
                match self.written() {
                    Ok(()) => {
                        self.pipe.clear();
                        self.write_nonces(seq, Kind::StartUp);
                        self.ask_tmux(Question::Launch { seq, is_recorded })?;
                    }
                    Err(error) => self.pending.push(Event::Launched { seq, result: Err(error) }),
                }
                None
            }
            Effect::StartRecorder => {
                self.ask_tmux(Question::Record)?;
                None
            }
            Effect::QueryPane => {
                self.ask_tmux(Question::QueryPane)?;
                None
            }
            Effect::Press(OwnKeys::Run | OwnKeys::TypeRun) => {
                self.ask_tmux(Question::Keys(vec![Key::Run]))?;
                None
            }
            Effect::Press(OwnKeys::Recover) => {
                self.ask_tmux(Question::Keys(vec![Key::Recover]))?;
                None
            }
            Effect::Type { call, .. } => {
                self.ask_tmux(Question::KeysFor(call, Vec::new()))?;
                None
            }
            Effect::PressFor { call, .. } => {
                self.ask_tmux(Question::KeysFor(call, vec![Key::Interrupt]))?;
                None
            }
            Effect::Signal { call, .. } => {
                self.press(vec![Key::Interrupt]);
                self.answered(call, Ok(()))?;
                None
            }
            Effect::Export { call } => {
                self.ask_tmux(Question::KeysFor(call, Vec::new()))?;
                None
            }
            Effect::Resize { call, size } => {
                self.ask_tmux(Question::Resize(call, size))?;
                None
            }
            Effect::InterruptShell => {
                self.press(vec![Key::Interrupt]);
                None
            }
            Effect::KillLeader => {
                self.shell_died(137);
                None
            }
            Effect::PublishJob { seq, status } => {
                self.published(seq, status)?;
                None
            }
            Effect::Answer { call, reply } => {
                self.answered(call, reply.map(drop))?;
                None
            }
            Effect::CleanUp { .. } => {
                self.cleaning_since = Some(self.now);
                self.ask_tmux(Question::Kill)?;
                None
            }
            Effect::SendServerSigchld | Effect::Publish | Effect::Finish => None,
        };
        Ok(event)
    }

    fn inspect(&self, inspection: Inspection) -> Finding {
        let mode = self.terminal.bash.as_ref().map(|bash| bash.mode);
        match inspection {
            Inspection::Foreground => Finding::Foreground { is_taken: mode == Some(Mode::ByHand) },
            Inspection::Shell => Finding::Shell {
                mode: match mode {
                    Some(Mode::Prompt) => ReadMode::AtPrompt,
                    Some(Mode::PlainLines(_)) => ReadMode::PlainLines,
                    _ => ReadMode::Nothing,
                },
            },
            Inspection::Starting => Finding::Starting { is_at_prompt: mode == Some(Mode::Prompt) },
        }
    }

    /// Lets tmux carry out its oldest command. Returns whether there was one.
    pub(super) fn tmux(&mut self) -> Result<bool, String> {
        if self.terminal.is_stopped || !self.terminal.is_alive {
            return Ok(false);
        }
        let Some((life, question)) = self.terminal.questions.pop_front() else {
            return Ok(false);
        };
        let known = self.pending.len();
        match question {
            Question::Keys(keys) => self.press(keys),
            Question::KeysFor(call, keys) => {
                self.press(keys);
                if self.calls.contains_key(&call) {
                    self.answered(call, Ok(()))?;
                }
            }
            Question::Launch { seq, is_recorded } => {
                let leader = self.process();
                let dies = self.broken_starts > 0;
                if self.broken_starts < u8::MAX {
                    self.broken_starts = self.broken_starts.saturating_sub(1);
                }
                self.terminal.bash = Some(Bash::new(leader, dies));
                self.terminal.code = None;
                if !is_recorded {
                    self.start_recorder();
                }
                self.pending.push(Event::Launched { seq, result: Ok(leader) });
            }
            Question::Record => {
                let result = match &self.terminal.bash {
                    Some(_) => Ok(()),
                    None => Err(refused()),
                };
                if result.is_ok() {
                    self.start_recorder();
                }
                self.pending.push(Event::RecorderStarted(result));
            }
            Question::QueryPane => {
                let finding = if self.terminal.bash.is_some() {
                    PaneStatus::Alive
                } else if self.deliver() {
                    // tmux marks a pane as dead only after it has passed on all its output.
                    PaneStatus::Dying
                } else {
                    PaneStatus::Dead(self.terminal.code.unwrap_or(1))
                };
                self.pending.push(Event::PaneQueried(Ok(finding)));
            }
            Question::Resize(call, size) => {
                self.pending.push(Event::Resized { call, size, result: Ok(()) });
            }
            Question::Kill => self.end_all(life),
        }
        // Answers for a killed owner reach nobody.
        if life != self.life {
            self.pending.truncate(known);
        }
        Ok(true)
    }

    /// Starts a recorder; the previous one writes what it has and ends.
    fn start_recorder(&mut self) {
        self.end_recorder();
        let process = self.process();
        self.terminal.recorder = Some(Recording::new(process));
    }

    fn end_recorder(&mut self) {
        if let Some(recorder) = &mut self.terminal.recorder {
            recorder.is_last = true;
        }
        while self.terminal.recorder.is_some() && self.record() {}
        self.terminal.recorder = None;
    }

    /// Ends the pane, its processes and its files.
    fn end_all(&mut self, life: u32) {
        while self.deliver() {}
        self.shell_died(129);
        self.end_recorder();
        self.entry = None;
        if life == self.life && self.cleaning_since.take().is_some() {
            self.pending.push(Event::CleanedUp);
        }
    }

    /// Ends the processes without tmux, which does not answer.
    pub(super) fn end_without_tmux(&mut self) -> Check {
        self.cleaning_since = None;
        self.tell(Event::TmuxSilent)?;
        self.shell_died(137);
        self.end_recorder();
        self.entry = None;
        self.pending.push(Event::CleanedUp);
        Ok(())
    }

    pub(super) fn kill_tmux(&mut self) -> Check {
        if !self.terminal.is_alive {
            return Ok(());
        }
        self.terminal.is_alive = false;
        self.shell_died(129);
        self.end_recorder();
        self.fail_questions()
    }

    fn fail_questions(&mut self) -> Check {
        while let Some((life, question)) = self.terminal.questions.pop_front() {
            let known = self.pending.len();
            match question {
                Question::Keys(_) => {}
                Question::KeysFor(call, _) => {
                    if self.calls.contains_key(&call) {
                        self.answered(call, Err(Error::ServerGone))?;
                    }
                }
                Question::Launch { seq, .. } => {
                    self.pending.push(Event::Launched { seq, result: Err(Error::ServerGone) });
                }
                Question::Record => {
                    self.pending.push(Event::RecorderStarted(Err(Error::ServerGone)));
                }
                Question::QueryPane => {
                    self.pending.push(Event::PaneQueried(Err(Error::ServerGone)));
                }
                Question::Resize(call, size) => {
                    let result = Err(Error::ServerGone);
                    self.pending.push(Event::Resized { call, size, result });
                }
                Question::Kill => self.end_all(life),
            }
            if life != self.life {
                self.pending.truncate(known);
            }
        }
        Ok(())
    }

    /// Passes one of the waiting answers to the owner. Returns whether there was one.
    pub(super) fn answer(&mut self, which: usize) -> Result<bool, String> {
        if self.pending.is_empty() || self.owner.is_none() {
            return Ok(false);
        }
        let event = self.pending.remove(which % self.pending.len());
        self.tell(event)?;
        Ok(true)
    }

    /// Lets the owner notice the end of a process. Returns whether there was one.
    pub(super) fn notice(&mut self) -> Result<bool, String> {
        let Some(owner) = &self.owner else { return Ok(false) };
        let bash = self.terminal.bash.as_ref().map(|bash| bash.leader);
        let recorder = self.terminal.recorder.as_ref().map(|recorder| recorder.process);
        let event = if let Some(leader) = owner.watched_leader().filter(|it| Some(*it) != bash) {
            Event::LeaderEnded(leader)
        } else if let Some(ended) = owner.watched_recorder().filter(|it| Some(*it) != recorder) {
            Event::RecorderEnded(ended)
        } else if owner.needs_server() && !self.terminal.is_alive {
            Event::ServerGone
        } else {
            return Ok(false);
        };
        self.tell(event)?;
        Ok(true)
    }
}
