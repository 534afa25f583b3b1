//! The unhappy half of a session's task: shells and recorders that die, and the end of it all.

use std::{
    fs, mem,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::process::Signal;
use tokio::time::{self, Instant};

use super::{
    input,
    launch::{Launched, Place},
    ledger::Latest,
    marker::{Kind, Seq},
    requests::CALL_KEYS,
    state::{CommandResult, Ended, Phase},
    task::{Current, DEATH_LIMIT, Running, Task, Then, Unreported},
};
use crate::{Error, Result};
use sandbox_process::Members;

/// The key on which the builtin tells again how its last command has ended.
pub(super) const RECOVER_KEY: &[u8] = b"\x1b[7717~";
/// How long until a look at a shell of which something may be lost, or another at one that is still starting.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long a shell that was asked for its report may take.
const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// Shells that may die in a row before their first prompt.
const FAILED_STARTS: u32 = 3;

impl Task {
    /// The shell has ended: starts another in the same directory, and keeps what it was doing for
    /// the report that follows.
    pub(super) async fn replace_shell(&mut self) -> Then {
        let Ok(exit_code) = self.exit_code().await else {
            self.close(Ended::ServerGone).await;
            return Then::Stop;
        };
        self.catch_up();
        let known = self.entry.latest.map(|latest| latest.seq);
        let before = match mem::replace(&mut self.current, Current::Idle) {
            Current::Running(running) => {
                self.entry.latest = Some(Latest { seq: running.seq, exit_code: Some(exit_code) });
                Some(Unreported { running, exit_code })
            }
            Current::Starting { before, .. } => {
                self.failed_starts += 1;
                before
            }
            Current::Idle => {
                let seq = self.job.borrow().as_ref().map(|job| job.seq);
                if let Some(seq) = seq.filter(|seq| Some(*seq) != known) {
                    self.entry.latest = Some(Latest { seq, exit_code: None });
                }
                None
            }
        };
        let seq = self.next_seq;
        self.next_seq += 1;
        let deadline = Instant::now() + self.launcher.config.start_limit;
        self.current = Current::Starting { seq, deadline, look_at: None, before };
        if self.failed_starts >= FAILED_STARTS || !self.start_shell(seq).await {
            self.close(Ended::ShellExited).await;
            return Then::Stop;
        }
        Then::GoOn
    }

    /// Asks tmux how the shell has ended.
    async fn exit_code(&mut self) -> Result<i32> {
        let deadline = Instant::now() + DEATH_LIMIT;
        let question = format!(
            "display-message -p -t {} '#{{pane_dead}} #{{pane_dead_status}} #{{pane_dead_signal}}'",
            self.entry.pane
        );
        // tmux has no word for a death outside the client's own session, so we ask, soon and then
        // less and less often; it is a matter of milliseconds. A pane counts as dead only when
        // tmux has passed on everything that was printed in it; its status may come a little later.
        let mut pause = Duration::from_millis(1);
        loop {
            let answer = match self.launcher.tmux.ask(&question).await {
                Err(Error::ServerGone) => return Err(Error::ServerGone),
                // What keeps tmux from answering may pass.
                answer => answer.unwrap_or_default(),
            };
            let mut words = answer.split(' ').map(|word| word.parse::<i32>().ok());
            let mut next = || words.next().flatten();
            let (dead, status, signal) = (next(), next(), next());
            let code = signal.map(|signal| 128 + signal).or(status);
            if let (Some(1), Some(code)) = (dead, code) {
                return Ok(code);
            }
            if dead == Some(1) {
                // tmux 3.3 sometimes misses the signal that a child has ended, and the shell stays a
                // zombie; the signal is harmless and makes it look again.
                self.entry.server.send(Signal::CHILD);
            }
            if Instant::now() > deadline {
                return Ok(-1);
            }
            time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Says whether there is another shell. If tmux does not answer, it is asked once more: its control client may
    /// just have been replaced.
    async fn start_shell(&mut self, seq: Seq) -> bool {
        match self.try_start_shell(seq).await {
            Err(Error::TmuxSilent { .. }) => self.try_start_shell(seq).await.is_ok(),
            tried => tried.is_ok(),
        }
    }

    async fn try_start_shell(&mut self, seq: Seq) -> Result<()> {
        let mut cwd = self.status.borrow().cwd.clone();
        while !cwd.is_dir() && cwd.pop() {}
        self.launcher.rewrite_start(&cwd)?;
        // Before anything tells of the new shell, so that the next owner knows what became of the old one.
        let saving = || Error::io("writing the ledger");
        self.launcher.dir.save(&self.entry).map_err(saving())?;
        let pane = self.entry.pane.clone();
        let place = Place::Again { pane: &pane, recorder: self.recorder };
        let Launched { leader, pipe, .. } = self.launcher.launch(place, seq).await?;
        self.entry.leader = leader;
        self.pipe = pipe;
        self.launcher.dir.save(&self.entry).map_err(saving())?;
        self.status.send_modify(|status| {
            status.phase = Phase::Starting;
            status.shell = leader;
            status.restarts += 1;
        });
        Ok(())
    }

    /// Somebody has killed the recorder. What was printed meanwhile is lost, and its successor says so
    /// in the log; the rest is not.
    pub(super) async fn replace_recorder(&mut self) -> Then {
        self.recorder = None;
        self.catch_up();
        if let Current::Running(running) = &mut self.current {
            running.assume_begun(&self.launcher.dir.log());
            // Its end may be lost, too.
            running.look_at = Some(Instant::now() + LOOK_AGAIN);
        }
        let pane = self.entry.pane.clone();
        if !self.stream_closed && self.entry.leader.is_alive() && self.recorder.is_none() {
            let _ = self.launcher.tmux.ask(&self.launcher.pipe_command(&pane)).await;
        }
        Then::GoOn
    }

    /// For a command that runs although its shell is at its prompt. While anything else has the terminal,
    /// or the text itself reads from it, no key is pressed, since it would be taken for an answer.
    pub(super) async fn recover(&mut self) {
        self.catch_up();
        let shell = self.shell();
        let Current::Running(running) = &self.current else { return };
        let (has_begun, interrupted) = (running.has_begun(), running.interrupted);
        if running.asked > 0 && running.look_at.is_some_and(|time| time > Instant::now()) {
            return;
        }
        if input::shell_reads_plain_lines(shell) {
            // The text has called something that turned line editing off. Then bash takes the terminal
            // for the rest of the text; an interrupt brings it back.
            return shell.send(Signal::INT);
        }
        if !self.is_at_prompt() {
            return;
        }
        if has_begun || interrupted {
            self.ask_for_report().await;
        }
    }

    /// For a shell whose owner was killed while it started. The secrets that it was given may have gone with that
    /// owner, and what it said with them was not understood. If it is at its prompt, it is called with
    /// nothing to run, and says so with new ones.
    pub(super) async fn ask_for_start(&mut self, seq: Seq) {
        let shell = self.launcher.shell(self.entry.leader);
        let is_at_prompt = shell.is_some_and(input::shell_edits_line);
        if let Current::Starting { look_at, deadline, .. } = &mut self.current {
            let next = Instant::now() + LOOK_AGAIN;
            *look_at = (!is_at_prompt && next < *deadline).then_some(next);
        }
        let dir = &self.launcher.dir;
        if is_at_prompt
            && dir.write_command(Vec::new()).is_ok()
            && self.pipe.announce_again(dir, seq, Kind::StartUp).is_ok()
        {
            let _ = self.type_bytes(CALL_KEYS).await;
        }
    }

    /// For a command whose shell is at its prompt and has reported nothing. It may have
    /// removed our entry from PROMPT_COMMAND; or a Ctrl-C has taken the report with it, on its way through
    /// the terminal; or a recorder was killed that had it; or the shell and we do not mean the same secret, since an
    /// owner was killed. The key asks
    /// the shell for its report, the second time with a new secret; if neither helps, the command is over
    /// with an unknown code.
    async fn ask_for_report(&mut self) {
        let Current::Running(running) = &mut self.current else { return };
        running.asked += 1;
        running.look_at = Some(Instant::now() + REPORT_LIMIT);
        match running.asked {
            1 => {}
            2 => drop(self.pipe.announce_end_again(&self.launcher.dir)),
            _ => return self.give_up(),
        }
        let _ = self.type_bytes(RECOVER_KEY).await;
    }

    /// Reports a command of whose end nothing will be heard, and sees to it that the next owner does so, too.
    pub(super) fn give_up(&mut self) {
        if let Current::Running(running) = mem::replace(&mut self.current, Current::Idle) {
            self.entry.latest = Some(Latest { seq: running.seq, exit_code: None });
            let _ = self.launcher.dir.save(&self.entry);
            let end = fs::metadata(self.launcher.dir.log()).map_or(0, |file| file.len());
            self.report_without_shell(running, -1, Ended::AtPrompt, end, SystemTime::now());
            self.become_idle();
        }
    }

    /// Ends every process of the session and removes its files.
    pub(super) async fn close(&mut self, ended: Ended) {
        let members = Members::of(self.entry.leader, &self.entry.mark);
        let target = self.launcher.target();
        let _ = self.launcher.tmux.ask(&format!("kill-session -t {target}")).await;
        members.end(self.launcher.config.grace).await;
        if let Some(recorder) = self.recorder
            && time::timeout(DEATH_LIMIT, recorder.ended()).await.is_err()
        {
            recorder.send(Signal::KILL);
        }
        self.catch_up();
        let phase = if ended == Ended::ServerGone { Phase::Lost } else { Phase::Closed };
        let end = fs::metadata(self.launcher.dir.log()).map_or(0, |file| file.len());
        match mem::replace(&mut self.current, Current::Idle) {
            Current::Running(running) => {
                self.report_without_shell(running, -1, ended, end, SystemTime::now());
            }
            Current::Starting { before: Some(Unreported { running, exit_code }), .. } => {
                self.report_without_shell(running, exit_code, ended, end, SystemTime::now());
            }
            Current::Starting { .. } | Current::Idle => {}
        }
        let _ = self.launcher.dir.remove();
        self.status.send_modify(|status| status.phase = phase);
    }

    /// Reports a command with what is known without the shell's word.
    pub(super) fn report_without_shell(
        &self,
        running: Running,
        exit_code: i32,
        ended: Ended,
        end: u64,
        at: SystemTime,
    ) {
        let started = running.status.borrow().started;
        // The code is the shell's; a command that was not begun has none.
        let exit_code = if started.is_some() { exit_code } else { -1 };
        let result = CommandResult {
            seq: running.seq,
            exit_code,
            ended,
            cwd: self.status.borrow().cwd.clone(),
            duration: started
                .and_then(|started| at.duration_since(started.at).ok())
                .unwrap_or_default(),
            background_pid: None,
            python: self.circumstances.python.clone(),
            user: self.circumstances.user.clone(),
            host: self.circumstances.host.clone(),
            output: started.map_or(end, |started| started.offset)..end,
            lost: running.lost,
        };
        running.status.send_modify(|status| status.result = Some(Arc::new(result)));
    }
}
