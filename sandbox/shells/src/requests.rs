//! The willing half of a session's task: what handles ask of it.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{self, Instant},
};

use super::{
    ending::LOOK_AGAIN,
    input::{self, Key},
    job::JobWatch,
    ledger::{Size, overwrite_private},
    marker::Kind,
    messages::Control,
    state::{JobStatus, Phase},
    task::{Current, Running, Task},
    tmux::quote_for_shell,
};
use crate::{Error, Result};

/// The key that runs the command that lies ready. The builtin binds it.
pub(super) const RUN_KEY: &str = "-H 1e";
/// The same with keys that bash has from birth, for the case that ours is bound to something else. The space
/// before the clearing is for an empty line, on which bash would ring the bell.
pub(super) const CALL_KEYS: &[u8] = b"\x05 \x15 __sb\n";
/// The key on which the builtin writes down the environment.
const EXPORTS_KEY: &[u8] = b"\x1b[7718~";
/// How long programs of PROMPT_COMMAND may have the terminal, and how often that is looked at.
const PROMPT_LIMIT: Duration = Duration::from_secs(2);
const PROMPT_PAUSE: Duration = Duration::from_millis(10);
/// How long a shell that was given a command may stay at its prompt: long, since it may only be slow,
/// and what is typed again then could meet the command instead.
pub(super) const START_LIMIT: Duration = Duration::from_secs(3);
/// Bytes per `send-keys`, so that no line to tmux gets long.
const TYPED_AT_ONCE: usize = 512;

impl Task {
    pub(super) async fn handle(&mut self, control: Control) {
        match control {
            Control::Run { text, answer } => match &self.current {
                Current::Starting { .. } => self.waiting.push((text, answer)),
                Current::Running(running) => {
                    let session = self.entry.id.clone();
                    let _ = answer.send(Err(Error::Busy { session, seq: running.seq }));
                }
                Current::Idle => {
                    let _ = answer.send(self.start_command(text).await);
                }
            },
            Control::Type { bytes, answer } => {
                if bytes.contains(&0x03) {
                    self.note_interrupt();
                }
                let _ = answer.send(self.type_bytes(&bytes).await);
            }
            Control::Press { keys, answer } => {
                if keys.iter().any(Key::is_interrupt) {
                    self.note_interrupt();
                }
                let names = keys.iter().map(Key::tmux_name).collect::<Vec<_>>().join(" ");
                let _ = answer.send(self.send_keys(&names).await);
            }
            Control::Signal { signal, answer } => {
                if signal == input::Signal::Interrupt {
                    self.note_interrupt();
                }
                let _ = answer.send(self.signal(signal));
            }
            Control::Resize { size, answer } => {
                let _ = answer.send(self.resize(size).await);
            }
            Control::Exports { answer } => {
                let _ = answer.send(self.ask_for_exports().await);
            }
            Control::CatchUp { answer } => {
                self.catch_up();
                let _ = answer.send(Ok(()));
            }
            Control::LooksIdle => self.recover().await,
            Control::Close { .. } => unreachable!("closing is handled by the loop"),
        }
    }

    /// The first of the commands that waited for the shell; the others find it busy.
    pub(super) async fn start_waiting(&mut self) {
        for (text, answer) in std::mem::take(&mut self.waiting) {
            self.handle(Control::Run { text, answer }).await;
        }
    }

    async fn start_command(&mut self, mut text: Vec<u8>) -> Result<JobWatch> {
        if self.is_occupied().await {
            return Err(Error::OccupiedByHand(self.entry.id.clone()));
        }
        let seq = self.next_seq;
        let dir = &self.launcher.dir;
        // When bash meets that in a text that it evaluates, it takes the terminal for the rest of the text. In a file
        // that it reads, bash ignores it.
        if turns_line_editing_off(&text) {
            overwrite_private(&dir.script(), &text).map_err(Error::io("writing the command"))?;
            text = format!("\\. {}", quote_for_shell(&dir.script().to_string_lossy())).into_bytes();
        }
        dir.write_command(text).map_err(Error::io("writing the command"))?;
        self.pipe.announce(dir, seq, Kind::Command)?;
        self.next_seq += 1;
        let (status, receiver) = watch::channel(JobStatus::default());
        self.current = Current::Running(Running {
            seq,
            status,
            lost: 0,
            interrupted: false,
            asked: 0,
            called: 0,
            look_at: Some(Instant::now() + START_LIMIT),
        });
        self.status.send_modify(|status| status.phase = Phase::Running(seq));
        let job = JobWatch { seq, status: receiver };
        self.job.send_replace(Some(job.clone()));
        // A pane that cannot be typed into has lost its shell, and we will hear of that.
        let [leave_mode, press] = self.keys(RUN_KEY);
        self.launcher.tmux.tell_all(&[&leave_mode, &press]).await?;
        Ok(job)
    }

    async fn ask_for_exports(&self) -> Result<()> {
        let session = self.entry.id.clone();
        match &self.current {
            Current::Starting { seq, .. } | Current::Running(Running { seq, .. }) => {
                Err(Error::Busy { session, seq: *seq })
            }
            Current::Idle if self.is_occupied().await => Err(Error::OccupiedByHand(session)),
            Current::Idle => {
                overwrite_private(&self.launcher.dir.exports(), b"")
                    .map_err(Error::io("emptying the file for the exports"))?;
                self.type_bytes(EXPORTS_KEY).await
            }
        }
    }

    /// Whether somebody has started a program by hand. What a prompt starts comes right after a command,
    /// and is over soon.
    async fn is_occupied(&self) -> bool {
        let deadline = self.idle_since + PROMPT_LIMIT;
        loop {
            let is_occupied = self.shell().stat().is_some_and(|stat| stat.foreground != stat.group);
            if !is_occupied || Instant::now() > deadline {
                return is_occupied;
            }
            // Nothing tells when a terminal changes hands.
            time::sleep(PROMPT_PAUSE).await;
        }
    }

    pub(super) async fn type_bytes(&self, bytes: &[u8]) -> Result<()> {
        for chunk in bytes.chunks(TYPED_AT_ONCE) {
            let keys = chunk.iter().fold("-H".to_owned(), |mut keys, byte| {
                keys.push_str(&format!(" {byte:02x}"));
                keys
            });
            self.send_keys(&keys).await?;
        }
        Ok(())
    }

    pub(super) async fn send_keys(&self, keys: &str) -> Result<()> {
        let [leave_mode, press] = self.keys(keys);
        self.launcher.tmux.ask_all(&[&leave_mode, &press]).await.map(drop)
    }

    /// The tmux commands that press keys. While a person looks through the history of the pane (`copy-mode`), tmux
    /// would take them for its own.
    fn keys(&self, keys: &str) -> [String; 2] {
        let pane = &self.entry.pane;
        [format!("copy-mode -q -t {pane}"), format!("send-keys -t {pane} {keys}")]
    }

    fn note_interrupt(&mut self) {
        self.catch_up();
        let Current::Running(running) = &mut self.current else { return };
        running.interrupted = true;
        // What the shell says of its end may be lost with it.
        running.look_at = Some(Instant::now() + LOOK_AGAIN);
        if !running.has_begun() && self.pipe.empty() {
            self.give_up();
        }
    }

    fn signal(&self, signal: input::Signal) -> Result<()> {
        let stat = self.shell().stat().ok_or(Error::SessionClosed(self.entry.id.clone()))?;
        // A shell that has lost its terminal has nothing in the foreground.
        let foreground = Some(stat.foreground).filter(|&group| group > 0);
        let Some(group) = foreground.and_then(rustix::process::Pid::from_raw) else {
            return Ok(());
        };
        match rustix::process::kill_process_group(group, signal.raw()) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::io("signalling the foreground")(error)),
        }
    }

    async fn resize(&mut self, size: Size) -> Result<()> {
        size.check()?;
        let Size { columns, rows } = size;
        let target = self.launcher.target();
        self.launcher
            .tmux
            .ask(&format!("resize-window -t {target} -x {columns} -y {rows}"))
            .await?;
        self.entry.size = size;
        self.status.send_modify(|status| status.size = size);
        self.launcher.dir.save(&self.entry).map_err(Error::io("writing the ledger"))
    }
}

/// Whether a text may contain `set +o emacs`, `shopt -uo vi` or the like. A text that only looks like it is run all
/// the same; it merely does not show the numbers of its background jobs.
fn turns_line_editing_off(text: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
    // Cheap, for the texts that do not.
    if !has(b"+o") && !has(b"shopt") {
        return false;
    }
    let between = |byte: &u8| byte.is_ascii_whitespace() || b";&|(){}'\"\\".contains(byte);
    let words: Vec<_> = text.split(between).filter(|word| !word.is_empty()).collect();
    let is_mode = |word: &[u8]| matches!(word, b"emacs" | b"vi");
    let is_off = |word: &[u8]| word.starts_with(b"+") && word.ends_with(b"o");
    words.windows(2).any(|pair| is_off(pair[0]) && is_mode(pair[1]))
        || words.contains(&&b"shopt"[..]) && words.iter().any(|word| is_mode(word))
}
