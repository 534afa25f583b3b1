//! The simulated world around one owner: files, pipe, tmux, shell, recorder and callers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    Rule,
    bash::{Bash, Key, Kind as TextKind, Mode, Nonce, Outcome, Program},
    step::Step,
    terminal::{Digests, Recording, Terminal},
};
use crate::{
    input::Key as NamedKey,
    ledger::{Entry, Size},
    marker::{Expected, Kind, Seq},
    output::index::{IndexEvent, IndexLine},
    owner::{CallId, Event, Inherited, Moment, Owner, Request, Text},
    state::{Ended, JobStatus},
};
use process_identity::ProcessId;

/// How long a shell may take to reach its first prompt.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Stands for the length of the log in events that do not provide it to the owner.
pub(super) const UNKNOWN_END: u64 = u64::MAX;

pub(super) type Check = Result<(), String>;

pub(super) struct World {
    broken: Option<Rule>,
    pub(super) base: Instant,
    /// Milliseconds since the start of the world.
    pub(super) now: u64,
    pub(super) owner: Option<Owner>,
    /// The number of earlier owners.
    pub(super) life: u32,
    pub(super) terminal: Terminal,
    pub(super) pipe: VecDeque<Nonce>,
    pub(super) digests: Digests,
    pub(super) text: Program,
    /// The ledger on disk.
    pub(super) entry: Option<Entry>,
    pub(super) index: Vec<IndexLine>,
    pub(super) read: usize,
    pub(super) log: u64,
    pub(super) is_disk_full: bool,
    /// Answers on their way to the owner.
    pub(super) pending: Vec<Event>,
    /// When the cleanup of the shell started.
    pub(super) cleaning_since: Option<u64>,
    /// Callers that have no answer yet.
    pub(super) calls: BTreeMap<CallId, Call>,
    /// Callers that have gone away.
    pub(super) gone: BTreeSet<CallId>,
    pub(super) jobs: BTreeMap<Seq, JobStatus>,
    pub(super) texts: BTreeMap<u64, Truth>,
    /// The text of each command, across all owners.
    pub(super) handed_over: BTreeMap<Seq, u64>,
    pub(super) told: BTreeMap<Seq, (i32, Ended)>,
    /// Whether something was lost that only a waiting caller can notice.
    pub(super) needs_waiter: bool,
    pub(super) broken_starts: u8,
    next: u64,
}

pub(super) struct Call {
    pub(super) since: u64,
    pub(super) is_close: bool,
    pub(super) is_run: bool,
}

#[derive(Default)]
pub(super) struct Truth {
    pub(super) evaluated: u32,
    pub(super) is_told: bool,
}

impl World {
    pub(super) fn new(broken: Option<Rule>) -> Self {
        let process = |pid| ProcessId { pid, start_time: 1 };
        let (leader, recorder) = (process(10), process(11));
        let entry = Entry {
            id: "a".parse().unwrap(),
            mark: "mark".into(),
            pane: "%1".into(),
            server: process(9),
            leader,
            size: Size::default(),
            latest: None,
        };
        let nothing = Program { id: 0, kind: TextKind::Nothing };
        let mut world = Self {
            broken,
            base: Instant::now(),
            now: 0,
            owner: None,
            life: 0,
            terminal: Terminal {
                is_alive: true,
                is_stopped: false,
                questions: VecDeque::new(),
                bash: Some(Bash::new(leader, false)),
                code: None,
                printed: VecDeque::new(),
                recorder: Some(Recording::new(recorder)),
            },
            pipe: VecDeque::new(),
            digests: Digests { seq: 0, is_command: false, start: 0, end: 0 },
            text: nothing,
            entry: Some(entry.clone()),
            index: Vec::new(),
            read: 0,
            log: 0,
            is_disk_full: false,
            pending: Vec::new(),
            cleaning_since: None,
            calls: BTreeMap::new(),
            gone: BTreeSet::new(),
            jobs: BTreeMap::new(),
            texts: BTreeMap::new(),
            handed_over: BTreeMap::new(),
            told: BTreeMap::new(),
            needs_waiter: false,
            broken_starts: 0,
            next: 100,
        };
        world.write_nonces(0, Kind::StartUp);
        let mut owner = Owner::new(entry, "/".into(), START_LIMIT, world.moment());
        owner.broken = broken;
        world.owner = Some(owner);
        world
    }

    pub(super) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn process(&mut self) -> ProcessId {
        ProcessId { pid: u32::try_from(self.fresh()).unwrap(), start_time: 1 }
    }

    pub(super) fn moment(&self) -> Moment {
        let passed = Duration::from_millis(self.now);
        Moment { now: self.base + passed, wall: UNIX_EPOCH + passed, log_end: self.log }
    }

    pub(super) fn wall(&self) -> SystemTime {
        self.moment().wall
    }

    pub(super) fn write_nonces(&mut self, seq: Seq, kind: Kind) {
        let (start, end) = (self.fresh(), self.fresh());
        self.pipe.push_back(Nonce::Start { seq, value: start });
        self.pipe.push_back(Nonce::End { seq, value: end });
        self.digests = Digests { seq, is_command: kind == Kind::Command, start, end };
    }

    /// Passes an event to the owner, after the lines of the index, as the driver does.
    pub(super) fn tell(&mut self, event: Event) -> Check {
        self.read_index()?;
        self.tell_at_once(event)
    }

    pub(super) fn read_index(&mut self) -> Check {
        while self.owner.is_some() && self.read < self.index.len() {
            let line = self.index[self.read].clone();
            self.read += 1;
            self.tell_at_once(Event::Recorded(line))?;
        }
        Ok(())
    }

    fn tell_at_once(&mut self, event: Event) -> Check {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut moment = self.moment();
            if !event.needs_log_end() {
                moment.log_end = UNKNOWN_END;
            }
            let Some(owner) = &mut self.owner else { return Ok(()) };
            let effects = owner.handle(event, moment);
            for effect in effects {
                events.extend(self.perform(effect)?);
            }
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, request: Request) -> Result<CallId, String> {
        let call = CallId(self.fresh());
        if self.owner.is_none() {
            return Ok(call);
        }
        let is_close = matches!(request, Request::Close);
        let is_run = matches!(request, Request::Run(_));
        self.calls.insert(call, Call { since: self.now, is_close, is_run });
        self.tell(Event::Requested { call, request })?;
        Ok(call)
    }

    /// Runs a new text and returns its number.
    pub(super) fn run(&mut self, kind: u8) -> Result<u64, String> {
        let id = self.fresh() * 16 + u64::from(kind);
        self.texts.insert(id, Truth::default());
        self.ask(Request::Run(Text(id.to_be_bytes().to_vec())))?;
        Ok(id)
    }

    pub(super) fn program(text: &Text) -> Program {
        let id = u64::from_be_bytes(text.0.as_slice().try_into().unwrap());
        let kind = match id % 16 {
            0 => TextKind::Exit,
            1 => TextKind::TurnEditingOff,
            kind => TextKind::Plain(u8::try_from(kind).unwrap() - 2),
        };
        Program { id, kind }
    }

    /// Carries out one step.
    pub(super) fn take(&mut self, step: Step) -> Check {
        self.now += 1;
        match step {
            Step::Run(kind) => self.run(kind).map(drop)?,
            Step::Interrupt => self.interrupt()?,
            Step::GoAway => {
                let running = self.calls.iter().filter(|(_, call)| call.is_run);
                self.gone.extend(running.map(|(call, _)| *call).next_back());
            }
            Step::Close => self.ask(Request::Close).map(drop)?,
            Step::Export => self.ask(Request::Export).map(drop)?,
            Step::Resize => self.ask(Request::Resize(Size { columns: 9, rows: 9 })).map(drop)?,
            Step::LookAtQuiet => self.tell(Event::LooksIdle)?,
            Step::ByHand => self.use_by_hand(),
            Step::InterruptByHand => {
                self.needs_waiter = true;
                self.press(vec![Key::Interrupt]);
            }
            Step::GoOn(rounds) => {
                for _ in 0..rounds {
                    self.go_on()?;
                }
            }
            Step::Tmux => drop(self.tmux()?),
            Step::Shell => drop(self.shell()?),
            Step::Deliver => drop(self.deliver()),
            Step::Record => drop(self.record()),
            Step::Read => self.read_index()?,
            Step::Answer(which) => drop(self.answer(usize::from(which))?),
            Step::Notice => drop(self.notice()?),
            Step::Pass(time) => self.pass(u64::from(time))?,
            Step::LoseMarker | Step::DoubleMarker | Step::SwapMarkers => self.disturb(step),
            Step::DoubleLine => {
                let line = self.index.last().filter(|it| matches!(it.event, IndexEvent::Marker(_)));
                self.index.extend(line.cloned());
            }
            Step::KillRecorder => self.terminal.recorder = None,
            Step::KillShell => self.shell_died(137),
            Step::KillTmux => self.kill_tmux()?,
            Step::StopTmux => self.terminal.is_stopped = true,
            Step::ContinueTmux => self.terminal.is_stopped = false,
            Step::KillOwner(rest) => self.kill_owner(usize::from(rest)),
            Step::Adopt => self.adopt()?,
            Step::Sweep => {
                if self.owner.is_none() {
                    self.adopt()?;
                    self.ask(Request::Close)?;
                }
            }
            Step::FillDisk => self.is_disk_full = true,
            Step::FreeDisk => self.is_disk_full = false,
            Step::BreakStartUp(number) => {
                self.broken_starts = if number == 5 { u8::MAX } else { number };
            }
        }
        self.check()
    }

    pub(super) fn interrupt(&mut self) -> Check {
        self.ask(Request::Press(vec![NamedKey::interrupt()])).map(drop)
    }

    fn use_by_hand(&mut self) {
        if let Some(bash) = &mut self.terminal.bash {
            bash.mode = match bash.mode {
                Mode::Prompt => Mode::ByHand,
                Mode::ByHand => Mode::Prompt,
                mode => mode,
            };
        }
    }

    fn disturb(&mut self, step: Step) {
        let tokens = match &mut self.terminal.recorder {
            Some(recorder) if !recorder.tokens.is_empty() => &mut recorder.tokens,
            _ => &mut self.terminal.printed,
        };
        match step {
            Step::LoseMarker => {
                self.needs_waiter |= tokens.pop_back().is_some();
            }
            Step::DoubleMarker => tokens.extend(tokens.back().copied()),
            _ if tokens.len() > 1 => {
                self.needs_waiter = true;
                let last = tokens.len() - 1;
                tokens.swap(last, last - 1);
            }
            _ => {}
        }
    }

    pub(super) fn kill_owner(&mut self, rest: usize) {
        self.owner = None;
        self.life += 1;
        self.pending.clear();
        self.calls.clear();
        self.jobs.clear();
        self.cleaning_since = None;
        let rest = rest % (self.terminal.questions.len() + 1);
        self.terminal.questions.truncate(rest);
    }

    /// A new owner adopts the shell from the files on disk.
    pub(super) fn adopt(&mut self) -> Check {
        if self.owner.is_some() || !self.terminal.is_alive {
            return Ok(());
        }
        let Some(mut entry) = self.entry.clone() else { return Ok(()) };
        let leader = self.terminal.bash.as_ref().map(|bash| bash.leader);
        entry.leader = leader.unwrap_or(entry.leader);
        let recorder = self.terminal.recorder.as_ref().map(|recorder| recorder.process);
        let opened = self.index.iter().rev().find_map(|line| match line.event {
            IndexEvent::Opened { recorder } => Some(Some(recorder)),
            IndexEvent::Closed => Some(None),
            _ => None,
        });
        let Digests { seq, is_command, .. } = self.digests;
        let kind = if is_command { Kind::Command } else { Kind::StartUp };
        let found = Inherited {
            shell: entry.leader,
            entry,
            expected: Expected { seq, kind, start: String::new(), end: String::new() },
            lines: self.index.clone(),
            recorder: opened.flatten().filter(|opened| Some(*opened) == recorder),
            start_limit: START_LIMIT,
        };
        self.read = self.index.len();
        let (mut owner, effects) = Owner::adopt(found, self.moment());
        owner.broken = self.broken;
        self.owner = Some(owner);
        for effect in effects {
            if let Some(event) = self.perform(effect)? {
                self.tell_at_once(event)?;
            }
        }
        let latest = self.handed_over.keys().next_back();
        match latest {
            Some(seq) if self.jobs.range(seq..).next().is_none() => {
                Err(format!("the next owner does not know command {seq}"))
            }
            _ => Ok(()),
        }
    }

    /// Records a loss that only a waiting caller can notice.
    pub(super) fn note_need_of_waiter(&mut self) {
        self.needs_waiter = true;
    }

    pub(super) fn shell_died(&mut self, code: i32) {
        if self.terminal.bash.take().is_some() {
            self.terminal.code = Some(code);
        }
    }

    pub(super) fn shell(&mut self) -> Result<bool, String> {
        let Some(bash) = &mut self.terminal.bash else { return Ok(false) };
        if bash.is_quiet() {
            return Ok(false);
        }
        let outcome = bash.step(&mut self.pipe, self.text, &mut self.terminal.printed);
        if let Mode::PlainLines(_) = bash.mode {
            self.note_need_of_waiter();
        }
        match outcome {
            Outcome::Nothing => {}
            Outcome::Began(program) => self.began(program)?,
            Outcome::Died(code) => self.shell_died(code),
        }
        Ok(true)
    }

    /// Delivers keys to the terminal. Ctrl-C discards output that the terminal has not delivered, as on Linux.
    pub(super) fn press(&mut self, keys: Vec<Key>) {
        if keys.contains(&Key::Interrupt) {
            self.terminal.printed.clear();
        }
        if let Some(bash) = &mut self.terminal.bash {
            bash.keys.extend(keys);
        }
    }

    pub(super) fn deliver(&mut self) -> bool {
        if self.terminal.is_stopped || !self.terminal.is_alive {
            return false;
        }
        let Some(token) = self.terminal.printed.pop_front() else { return false };
        if let Some(recorder) = &mut self.terminal.recorder {
            recorder.tokens.push_back(token);
        }
        true
    }

    pub(super) fn record(&mut self) -> bool {
        if self.is_disk_full {
            return false;
        }
        let wall = self.wall();
        let line = |offset, event| IndexLine { offset, at: wall, event };
        let Some(recorder) = &mut self.terminal.recorder else { return false };
        let has_done = recorder.step(self.digests, &mut self.log, line, &mut self.index);
        if !has_done && recorder.is_last {
            self.index.push(line(self.log, IndexEvent::Closed));
            self.terminal.recorder = None;
            return true;
        }
        has_done
    }
}
