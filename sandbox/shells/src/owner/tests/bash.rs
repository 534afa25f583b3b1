//! A model of bash with our builtin: how `builtin.c` handles nonces, keys and markers.

use std::collections::VecDeque;

use crate::marker::Seq;
use process_identity::ProcessId;

/// A text, identified by its number, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) id: u64,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Takes this many steps and ends.
    Plain(u8),
    /// Ends the shell.
    Exit,
    /// Turns line editing off, so that bash reads the rest from the terminal until an interrupt.
    TurnEditingOff,
    /// The empty text.
    Nothing,
}

impl Program {
    pub(super) fn code(self) -> i32 {
        i32::try_from(self.id % 100).unwrap()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Run,
    Recover,
    Interrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nonce {
    Start { seq: Seq, value: u64 },
    End { seq: Seq, value: u64 },
}

/// A piece of the shell's output, a few bytes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Output,
    Start { seq: Seq, value: u64 },
    End { seq: Seq, value: u64, code: i32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The shell has not read its first nonces.
    Born,
    StartUp,
    Prompt,
    Evaluating(Program, u8),
    PlainLines(Program),
    /// A program that a person has started by hand has the terminal.
    ByHand,
}

#[derive(Debug)]
pub(super) struct Bash {
    pub(super) leader: ProcessId,
    pub(super) mode: Mode,
    pub(super) keys: VecDeque<Key>,
    dies_in_start_up: bool,
    ahead: Option<Nonce>,
    start: Option<(Seq, u64)>,
    end: Option<(Seq, u64)>,
    is_running: bool,
    code: i32,
}

/// The result of one step of the shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    /// The shell has begun to evaluate this text.
    Began(Program),
    Died(i32),
}

impl Bash {
    pub(super) fn new(leader: ProcessId, dies_in_start_up: bool) -> Self {
        Self {
            leader,
            mode: Mode::Born,
            keys: VecDeque::new(),
            dies_in_start_up,
            ahead: None,
            start: None,
            end: None,
            is_running: false,
            code: 0,
        }
    }

    fn take(&mut self, pipe: &mut VecDeque<Nonce>) -> Option<Nonce> {
        self.ahead.take().or_else(|| pipe.pop_front())
    }

    /// Takes nonces and prints the start marker. The last complete pair counts; earlier nonces were replaced or given
    /// up.
    fn begin(&mut self, pipe: &mut VecDeque<Nonce>, printed: &mut VecDeque<Token>) -> bool {
        let (mut start, mut found) = (None, None);
        while let Some(nonce) = self.take(pipe) {
            match nonce {
                Nonce::Start { seq, value } => start = Some((seq, value)),
                Nonce::End { seq, value } => {
                    if let Some((of, start)) = start.filter(|(of, _)| *of == seq) {
                        found = Some(((of, start), (seq, value)));
                    }
                }
            }
        }
        let Some((start, end)) = found else { return false };
        (self.start, self.end, self.is_running) = (Some(start), Some(end), true);
        printed.push_back(Token::Start { seq: start.0, value: start.1 });
        true
    }

    fn tell_end(&mut self, pipe: &mut VecDeque<Nonce>, printed: &mut VecDeque<Token>) {
        while let Some(nonce) = self.take(pipe) {
            match nonce {
                Nonce::Start { .. } => {
                    self.ahead = Some(nonce);
                    break;
                }
                Nonce::End { seq, value } if self.start.is_some_and(|(of, _)| of == seq) => {
                    self.end = Some((seq, value));
                }
                Nonce::End { .. } => {}
            }
        }
        if let Some((seq, value)) = self.end {
            printed.push_back(Token::End { seq, value, code: self.code });
            self.is_running = false;
        }
    }

    /// Makes one step.
    pub(super) fn step(
        &mut self,
        pipe: &mut VecDeque<Nonce>,
        text: Program,
        printed: &mut VecDeque<Token>,
    ) -> Outcome {
        match self.mode {
            Mode::Born => {
                self.begin(pipe, printed);
                self.mode = Mode::StartUp;
                Outcome::Nothing
            }
            Mode::StartUp if self.dies_in_start_up => Outcome::Died(1),
            Mode::StartUp => {
                self.mode = Mode::Prompt;
                if self.is_running {
                    self.code = 0;
                    self.tell_end(pipe, printed);
                }
                Outcome::Nothing
            }
            Mode::Prompt => self.step_at_prompt(pipe, text, printed),
            Mode::Evaluating(program, left) => {
                if self.take_interrupt() {
                    return self.finish(130, pipe, printed);
                }
                if left > 0 {
                    printed.push_back(Token::Output);
                    self.mode = Mode::Evaluating(program, left - 1);
                    return Outcome::Nothing;
                }
                match program.kind {
                    Kind::Exit => Outcome::Died(program.code()),
                    Kind::TurnEditingOff => {
                        self.mode = Mode::PlainLines(program);
                        Outcome::Nothing
                    }
                    Kind::Plain(_) | Kind::Nothing => self.finish(program.code(), pipe, printed),
                }
            }
            Mode::PlainLines(_) => {
                if self.take_interrupt() {
                    return self.finish(130, pipe, printed);
                }
                Outcome::Nothing
            }
            Mode::ByHand => Outcome::Nothing,
        }
    }

    fn step_at_prompt(
        &mut self,
        pipe: &mut VecDeque<Nonce>,
        text: Program,
        printed: &mut VecDeque<Token>,
    ) -> Outcome {
        match self.keys.pop_front() {
            Some(Key::Run) => {
                if !self.begin(pipe, printed) {
                    return Outcome::Nothing;
                }
                if text.kind == Kind::Nothing {
                    return self.finish(0, pipe, printed);
                }
                let steps = match text.kind {
                    Kind::Plain(steps) => steps,
                    _ => 1,
                };
                self.mode = Mode::Evaluating(text, steps);
                Outcome::Began(text)
            }
            Some(Key::Recover) => {
                self.tell_end(pipe, printed);
                Outcome::Nothing
            }
            Some(Key::Interrupt) | None => Outcome::Nothing,
        }
    }

    fn finish(
        &mut self,
        code: i32,
        pipe: &mut VecDeque<Nonce>,
        printed: &mut VecDeque<Token>,
    ) -> Outcome {
        (self.code, self.mode) = (code, Mode::Prompt);
        self.tell_end(pipe, printed);
        Outcome::Nothing
    }

    fn take_interrupt(&mut self) -> bool {
        let place = self.keys.iter().position(|key| *key == Key::Interrupt);
        place.map(|place| self.keys.remove(place)).is_some()
    }

    /// Whether the shell would do nothing in a step.
    pub(super) fn is_quiet(&self) -> bool {
        match self.mode {
            Mode::Prompt => self.keys.is_empty(),
            Mode::PlainLines(_) => !self.keys.contains(&Key::Interrupt),
            Mode::ByHand => true,
            Mode::Born | Mode::StartUp | Mode::Evaluating(..) => false,
        }
    }
}
