//! Keys and signals for a shell, and the check whether a program waits for input.

use std::{fmt, fs::OpenOptions, os::unix::fs::OpenOptionsExt as _, str::FromStr};

use rustix::{
    fs::OFlags,
    termios::{LocalModes, tcgetattr},
};

use crate::Error;
use process_identity::{self as process, ProcessId, Stat};

/// The size of bash's reads when it reads commands without line editing.
const BASH_READ_SIZE: u64 = 1024;

/// The names of keys: ours, and those of tmux.
const KEY_NAMES: &[(&str, &str)] = &[
    ("ENTER", "Enter"),
    ("TAB", "Tab"),
    ("BS", "BSpace"),
    ("BACKSPACE", "BSpace"),
    ("DELETE", "DC"),
    ("ESC", "Escape"),
    ("SPACE", "Space"),
    ("UP", "Up"),
    ("DOWN", "Down"),
    ("LEFT", "Left"),
    ("RIGHT", "Right"),
    ("HOME", "Home"),
    ("END", "End"),
    ("PGUP", "PageUp"),
    ("PGDN", "PageDown"),
    ("INSERT", "IC"),
    ("F1", "F1"),
    ("F2", "F2"),
    ("F3", "F3"),
    ("F4", "F4"),
    ("F5", "F5"),
    ("F6", "F6"),
    ("F7", "F7"),
    ("F8", "F8"),
    ("F9", "F9"),
    ("F10", "F10"),
    ("F11", "F11"),
    ("F12", "F12"),
];

/// A key of the keyboard, written `C-c`, `CTRL+C`, `M-x`, `UP`, `ENTER` and so on, in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key Ctrl-C.
    pub fn interrupt() -> Self {
        Self("C-c".into())
    }

    /// The name of the key in tmux. It cannot be mistaken for another argument.
    pub(crate) fn tmux_name(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_interrupt(&self) -> bool {
        self.0 == "C-c"
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let upper = text.to_ascii_uppercase();
        if let Some((_, name)) = KEY_NAMES.iter().find(|(ours, _)| *ours == upper) {
            return Ok(Self((*name).to_owned()));
        }
        let after = |prefixes: [&str; 4]| {
            prefixes.iter().find_map(|prefix| upper.strip_prefix(prefix)).map(str::to_owned)
        };
        let letter = |rest: &str| {
            let mut characters = rest.chars();
            characters.next().filter(|first| {
                characters.next().is_none()
                    && (first.is_ascii_alphabetic() || "@[]^_".contains(*first))
            })
        };
        let control = after(["C-", "CTRL-", "CTRL+", "^"]).as_deref().and_then(letter);
        let meta = after(["M-", "ALT-", "ALT+", "META-"]).as_deref().and_then(letter);
        match (control, meta) {
            (Some(letter), _) => Ok(Self(format!("C-{}", letter.to_ascii_lowercase()))),
            (_, Some(letter)) => Ok(Self(format!("M-{}", letter.to_ascii_lowercase()))),
            _ => Err(Error::Invalid(format!(
                "{:?} is not a key; use C-a to C-z, M-a to M-z, ENTER, TAB, ESC, BS, UP, DOWN, LEFT, \
                 RIGHT, HOME, END, PGUP, PGDN or F1 to F12, or send it as text",
                text.chars().take(40).collect::<String>()
            ))),
        }
    }
}

/// A signal for the foreground programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, as Ctrl-C sends.
    Interrupt,
    /// SIGTERM: asks the programs to end.
    Terminate,
    /// SIGKILL: ends the programs at once.
    Kill,
    /// SIGQUIT, as Ctrl-\ sends.
    Quit,
    /// SIGHUP: the terminal is gone.
    HangUp,
    /// SIGCONT: continues stopped programs.
    Continue,
    /// SIGSTOP: stops the programs.
    Stop,
    /// SIGUSR1, whose meaning the program defines.
    User1,
    /// SIGUSR2, whose meaning the program defines.
    User2,
}

impl Signal {
    pub(crate) fn raw(self) -> rustix::process::Signal {
        use rustix::process::Signal as Raw;
        match self {
            Self::Interrupt => Raw::INT,
            Self::Terminate => Raw::TERM,
            Self::Kill => Raw::KILL,
            Self::Quit => Raw::QUIT,
            Self::HangUp => Raw::HUP,
            Self::Continue => Raw::CONT,
            Self::Stop => Raw::STOP,
            Self::User1 => Raw::USR1,
            Self::User2 => Raw::USR2,
        }
    }
}

/// Whether the foreground program seems to wait for typed input. This is a guess from one look at `/proc`, never a
/// reason to treat a command as finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputHint {
    /// There is no sign that it does.
    None,
    /// It reads a line.
    Line,
    /// It reads a line without echo: usually a password.
    Hidden,
    /// It reads single keys: a pager, an editor, an interactive prompt with line editing.
    Keys,
}

/// Checks the terminal of a shell whose command has been quiet for a while.
pub(crate) fn input_hint(shell: ProcessId) -> InputHint {
    hint(shell).unwrap_or(InputHint::None)
}

/// Whether the shell itself has the terminal and edits a line there.
pub(crate) fn shell_edits_line(shell: ProcessId) -> bool {
    let Some(stat) = shell.stat() else { return false };
    stat.foreground == stat.group
        && local_modes(&stat).is_some_and(|modes| !modes.contains(LocalModes::ICANON))
}

/// Whether the shell itself reads commands from its terminal without line editing. The bash builtin `read` looks
/// almost the same, but reads another number of bytes; and a program that replaced the shell by `exec` has another
/// name.
pub(crate) fn shell_reads_plain_lines(shell: ProcessId) -> bool {
    let Some(stat) = shell.stat() else { return false };
    stat.foreground == stat.group
        && shell.is_named("bash")
        && matches!(reads_terminal(shell.pid, &stat), Some((0, BASH_READ_SIZE)))
}

fn hint(shell: ProcessId) -> Option<InputHint> {
    let stat = shell.stat()?;
    let modes = local_modes(&stat)?;
    let line_wise = modes.contains(LocalModes::ICANON);
    let reads = process::group_members(stat.foreground, stat.terminal)
        .into_iter()
        .any(|process| waits_for_terminal(process.pid, &stat, line_wise));
    // A program sets the modes before it reads, perhaps after they were read above; so read them again.
    let modes = local_modes(&stat)?;
    let line_wise = modes.contains(LocalModes::ICANON);
    Some(match (reads, line_wise, modes.contains(LocalModes::ECHO)) {
        (false, ..) => InputHint::None,
        (true, false, _) => InputHint::Keys,
        (true, true, true) => InputHint::Line,
        (true, true, false) => InputHint::Hidden,
    })
}

fn local_modes(stat: &Stat) -> Option<LocalModes> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let terminal = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(stat.terminal_path()?)
        .ok()?;
    Some(tcgetattr(terminal).ok()?.local_modes)
}

/// Whether a process is blocked in a read of the terminal or, if the terminal delivers single keys, in a wait for
/// several descriptors, as line editors do.
fn waits_for_terminal(pid: u32, shell: &Stat, line_wise: bool) -> bool {
    match blocked_in(pid) {
        Some((SYSCALL_READ, _)) => reads_terminal(pid, shell).is_some(),
        Some((number, _)) => !line_wise && SYSCALLS_WAIT.contains(&number),
        None => false,
    }
}

/// The descriptor and the byte count of the terminal read in which a process is blocked.
fn reads_terminal(pid: u32, shell: &Stat) -> Option<(u64, u64)> {
    let (SYSCALL_READ, [fd, _, count]) = blocked_in(pid)? else { return None };
    let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let is_ours = target.as_os_str() == "/dev/tty" || Some(target) == shell.terminal_path();
    is_ours.then_some((fd, count))
}

/// The system call in which a process is blocked, with its first three arguments.
fn blocked_in(pid: u32) -> Option<(u32, [u64; 3])> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some((number, [argument()?, argument()?, argument()?]))
}

#[cfg(target_arch = "x86_64")]
const SYSCALL_READ: u32 = 0;
/// The numbers of poll, select, pselect6, ppoll, epoll_wait and epoll_pwait.
#[cfg(target_arch = "x86_64")]
const SYSCALLS_WAIT: &[u32] = &[7, 23, 270, 271, 232, 281];
#[cfg(not(target_arch = "x86_64"))]
const SYSCALL_READ: u32 = 63;
/// The numbers of pselect6, ppoll and epoll_pwait, as on every architecture with the generic table.
#[cfg(not(target_arch = "x86_64"))]
const SYSCALLS_WAIT: &[u32] = &[72, 73, 22];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_many_spellings() {
        for (text, name) in [
            ("C-c", "C-c"),
            ("c-C", "C-c"),
            ("CTRL+d", "C-d"),
            ("ctrl-z", "C-z"),
            ("up", "Up"),
            ("Enter", "Enter"),
            ("M-x", "M-x"),
            ("pgdn", "PageDown"),
        ] {
            assert_eq!(text.parse::<Key>().unwrap().tmux_name(), name, "{text}");
        }
        for text in ["", "C-", "C-cc", "hello", "C-ä", "F13", "x"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }
}
