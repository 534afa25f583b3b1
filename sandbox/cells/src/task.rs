//! The task that owns a kernel. Only this task talks to the helper.

use std::{
    collections::VecDeque,
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::{
    Environment,
    cell::{CellEnd, CellOutput, CellResult, ExecuteOptions},
    error::{Error, Result},
    helper::Helper,
    outputs::Outputs,
};

/// Python ignores an interrupt outside of cells, so an interrupt may be lost. To end a cell it is
/// repeated this many times, at this interval.
const INTERRUPTS: u32 = 5;
const INTERRUPT_AGAIN: Duration = Duration::from_secs(1);

/// Receives the answer to a request.
pub(super) type Answer<T> = oneshot::Sender<Result<T>>;

/// Requests of the handles.
pub(super) enum Control {
    /// Answer when the kernel is ready.
    Ready {
        answer: Answer<()>,
    },
    Execute {
        code: String,
        options: ExecuteOptions,
        answer: Answer<CellResult>,
    },
    /// Send one interrupt.
    Interrupt {
        answer: Answer<()>,
    },
    /// Repeat interrupts until the cell has ended.
    EndCell {
        answer: Answer<()>,
    },
    Restart {
        environment: Option<Environment>,
        answer: Answer<()>,
    },
    ShutDown {
        answer: Answer<()>,
    },
}

/// Events from the helper.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event {
    Ready,
    Output { cell: u64, output: CellOutput },
    Done { cell: u64, status: String, count: Option<u64>, reason: Option<String> },
    Died,
    Failed { reason: String },
}

pub(super) struct Task {
    helper: Helper,
    state: State,
    /// Requests that came while the kernel was starting.
    waiting: VecDeque<Control>,
    cells: u64,
}

enum State {
    /// The helper is starting a kernel. `cell` is the former kernel's cell until the helper reports
    /// its end.
    Starting {
        cell: Option<Cell>,
    },
    Idle,
    Running(Cell),
    /// A cell is still running after its result was given as [`CellEnd::Stuck`].
    Stuck {
        cell: u64,
    },
}

struct Cell {
    number: u64,
    answer: Answer<CellResult>,
    cwd: Option<PathBuf>,
    outputs: Outputs,
    began: Instant,
    deadline: Option<Instant>,
    timed_out: bool,
    /// Number of interrupts still to send, the first at `next_interrupt`.
    interrupts: u32,
    next_interrupt: Option<Instant>,
}

impl Task {
    pub(super) fn new(helper: Helper) -> Self {
        Self { helper, state: State::Starting { cell: None }, waiting: VecDeque::new(), cells: 0 }
    }

    pub(super) async fn run(mut self, mut controls: mpsc::Receiver<Control>) {
        loop {
            let wake_at = match &self.state {
                State::Running(cell) => cell.next_interrupt.or(cell.deadline),
                _ => None,
            };
            tokio::select! {
                line = self.helper.next_line() => match line {
                    Some(line) => self.handle_event(&line),
                    None => return self.end(None, controls).await,
                },
                control = controls.recv() => match control {
                    Some(Control::ShutDown { answer }) => {
                        return self.end(Some(answer), controls).await;
                    }
                    Some(control) => self.handle(control),
                    // All handles are gone.
                    None => return self.end(None, controls).await,
                },
                () = until(wake_at) => self.interrupt_cell(),
            }
        }
    }

    fn handle(&mut self, control: Control) {
        match control {
            Control::Interrupt { answer } => {
                self.interrupt_once();
                respond(answer, Ok(()));
            }
            Control::EndCell { answer } => {
                match &mut self.state {
                    State::Running(cell) => cell.interrupt_repeatedly(Instant::now()),
                    _ => self.interrupt_once(),
                }
                respond(answer, Ok(()));
            }
            control if matches!(self.state, State::Starting { .. }) => {
                self.waiting.push_back(control);
            }
            Control::Ready { answer } => respond(answer, Ok(())),
            Control::Execute { code, options, answer } => self.execute(&code, options, answer),
            Control::Restart { environment, answer } => {
                self.helper.restart_kernel(environment.as_ref());
                self.waiting.push_back(Control::Ready { answer });
                self.start_again();
            }
            Control::ShutDown { .. } => unreachable!("the loop handles the end"),
        }
    }

    fn execute(&mut self, code: &str, options: ExecuteOptions, answer: Answer<CellResult>) {
        let running = match &self.state {
            State::Running(cell) => Some(cell.number),
            State::Stuck { cell } => Some(*cell),
            State::Starting { .. } | State::Idle => None,
        };
        if let Some(cell) = running {
            respond(answer, Err(Error::Busy { cell }));
            return;
        }
        self.cells += 1;
        let ExecuteOptions { cwd, timeout, subscriber } = options;
        let directory = cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
        let request = json!({
            "do": "execute",
            "cell": self.cells,
            "code": code,
            "cwd": directory,
        });
        self.helper.send(&request);
        let began = Instant::now();
        self.state = State::Running(Cell {
            number: self.cells,
            answer,
            cwd,
            outputs: Outputs::new(subscriber),
            began,
            deadline: timeout.and_then(|timeout| began.checked_add(timeout)),
            timed_out: false,
            interrupts: 0,
            next_interrupt: None,
        });
    }

    fn handle_event(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Event::Ready) => {
                self.state = State::Idle;
                while !matches!(self.state, State::Starting { .. })
                    && let Some(control) = self.waiting.pop_front()
                {
                    self.handle(control);
                }
            }
            Ok(Event::Output { cell, output }) => {
                if let Some(cell) = self.running(cell) {
                    cell.outputs.push(output, line.len());
                }
            }
            Ok(Event::Done { cell, status, count, reason }) => {
                self.cell_ended(cell, &status, count, reason);
            }
            Ok(Event::Died) => self.start_again(),
            Ok(Event::Failed { reason }) => self.helper.note_failure(reason),
            // An output that is not valid JSON for us, such as NaN.
            Err(_) => {
                if let State::Running(cell) = &mut self.state {
                    let size = line.len();
                    cell.outputs.push(CellOutput::Omitted { bytes: size as u64 }, size);
                }
            }
        }
    }

    fn running(&mut self, number: u64) -> Option<&mut Cell> {
        match &mut self.state {
            // Also during a restart: these outputs are from before it.
            State::Running(cell) | State::Starting { cell: Some(cell) }
                if cell.number == number =>
            {
                Some(cell)
            }
            _ => None,
        }
    }

    fn start_again(&mut self) {
        let cell = match std::mem::replace(&mut self.state, State::Idle) {
            State::Running(cell) | State::Starting { cell: Some(cell) } => Some(cell),
            State::Starting { cell: None } | State::Idle | State::Stuck { .. } => None,
        };
        self.state = State::Starting { cell };
    }

    fn cell_ended(
        &mut self,
        number: u64,
        status: &str,
        count: Option<u64>,
        reason: Option<String>,
    ) {
        let is_over = matches!(status, "died" | "restarted");
        let next = if is_over { State::Starting { cell: None } } else { State::Idle };
        let cell = match std::mem::replace(&mut self.state, next) {
            State::Running(cell) => Some(cell),
            State::Starting { cell } => {
                self.state = State::Starting { cell: None };
                cell
            }
            // Its result was given before.
            State::Stuck { .. } | State::Idle => None,
        };
        let Some(cell) = cell.filter(|cell| cell.number == number) else { return };
        match (status, reason) {
            ("no-directory", reason) => {
                let directory = cell.cwd.unwrap_or_default();
                let reason = reason.unwrap_or_default();
                respond(cell.answer, Err(Error::Directory { directory, reason }));
            }
            ("died", _) => cell.finish(CellEnd::KernelDied, count),
            ("restarted", _) => cell.finish(CellEnd::Restarted, count),
            _ if cell.timed_out => cell.finish(CellEnd::TimedOut, count),
            ("ok", _) => cell.finish(CellEnd::Finished, count),
            _ => cell.finish(CellEnd::Raised, count),
        }
    }

    fn interrupt_once(&self) {
        if let State::Running(_) | State::Stuck { .. } = self.state {
            self.helper.send(&json!({"do": "interrupt"}));
        }
    }

    /// Called when a timeout has passed or an interrupt is due.
    fn interrupt_cell(&mut self) {
        let now = Instant::now();
        let State::Running(cell) = &mut self.state else { return };
        if cell.deadline.is_some_and(|deadline| deadline <= now) && !cell.timed_out {
            cell.timed_out = true;
            cell.interrupt_repeatedly(now);
        }
        if cell.next_interrupt.is_none_or(|next| next > now) {
            return;
        }
        if cell.interrupts > 0 {
            cell.interrupts -= 1;
            cell.next_interrupt = Some(now + INTERRUPT_AGAIN);
            self.interrupt_once();
            return;
        }
        cell.next_interrupt = None;
        if cell.timed_out {
            let stuck = State::Stuck { cell: cell.number };
            if let State::Running(cell) = std::mem::replace(&mut self.state, stuck) {
                cell.finish(CellEnd::Stuck, None);
            }
        }
    }

    /// Ends helper and kernel, and answers all pending requests.
    async fn end(mut self, answer: Option<Answer<()>>, mut controls: mpsc::Receiver<Control>) {
        controls.close();
        let reason = self.helper.end().await;
        let ended = || Error::Ended { reason: reason.clone() };
        if let State::Running(cell) | State::Starting { cell: Some(cell) } = self.state {
            respond(cell.answer, Err(ended()));
        }
        while let Some(control) = self.waiting.pop_front().or_else(|| controls.try_recv().ok()) {
            match control {
                Control::Execute { answer, .. } => respond(answer, Err(ended())),
                Control::Ready { answer } | Control::Restart { answer, .. } => {
                    respond(answer, Err(ended()));
                }
                Control::Interrupt { answer }
                | Control::EndCell { answer }
                | Control::ShutDown { answer } => {
                    respond(answer, Ok(()));
                }
            }
        }
        if let Some(answer) = answer {
            respond(answer, Ok(()));
        }
    }
}

impl Cell {
    fn interrupt_repeatedly(&mut self, now: Instant) {
        self.interrupts = INTERRUPTS;
        self.next_interrupt = Some(now);
    }

    fn finish(self, ended: CellEnd, execution_count: Option<u64>) {
        let (duration, outputs) = (self.began.elapsed(), self.outputs.finish());
        let result = CellResult { outputs, ended, execution_count, duration };
        respond(self.answer, Ok(result));
    }
}

/// Sends an answer. A caller that no longer waits does not need it.
fn respond<T>(answer: Answer<T>, result: Result<T>) {
    let _ = answer.send(result);
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
