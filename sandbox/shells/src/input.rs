//! What can be sent into a shell: text, keys and signals; and whether a program waits for it.

use std::{fmt, fs::OpenOptions, os::unix::fs::OpenOptionsExt as _, str::FromStr};

use rustix::{
    fs::OFlags,
    termios::{LocalModes, tcgetattr},
};

use crate::Error;
use process_identity::{self as process, ProcessId, Stat};

/// Bytes for which bash asks when it reads commands without editing lines.
const COMMANDS_AT_ONCE: u64 = 1024;

/// Names of keys as we take them and as tmux knows them.
const NAMED: &[(&str, &str)] = &[
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
    /// Ctrl-C.
    pub fn interrupt() -> Self {
        Self("C-c".into())
    }

    /// The name under which tmux knows it; cannot be mistaken for anything else there.
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
        if let Some((_, name)) = NAMED.iter().find(|(ours, _)| *ours == upper) {
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
                "{text:?} is no key; use C-a to C-z, M-a to M-z, ENTER, TAB, ESC, BS, UP, DOWN, LEFT, \
                 RIGHT, HOME, END, PGUP, PGDN or F1 to F12, or send it as text"
            ))),
        }
    }
}

/// A signal for the program in the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// As Ctrl-C does.
    Interrupt,
    /// Asks to end.
    Terminate,
    /// Ends without asking.
    Kill,
    /// As Ctrl-\ does.
    Quit,
    /// The terminal is gone.
    HangUp,
    /// Goes on after a stop.
    Continue,
    /// Stops.
    Stop,
    /// For the program's own use.
    User1,
    /// For the program's own use.
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

/// Whether the program in the foreground seems to wait for somebody to type. It is a guess from one
/// look at the kernel's tables, never a reason to call a command finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputHint {
    /// No sign of it.
    None,
    /// It reads a line.
    Line,
    /// It reads a line that is not shown: a password, as a rule.
    Hidden,
    /// It reads single keys: a pager, an editor, an interactive prompt with line editing.
    Keys,
}

/// Takes one look at the terminal of a shell whose command has been quiet for a while.
pub(crate) fn look(shell: ProcessId) -> InputHint {
    hint(shell).unwrap_or(InputHint::None)
}

/// Whether the shell itself holds its terminal and edits a line there.
pub(crate) fn shell_edits_line(shell: ProcessId) -> bool {
    let Some(stat) = shell.stat() else { return false };
    stat.foreground == stat.group
        && local_modes(&stat).is_some_and(|modes| !modes.contains(LocalModes::ICANON))
}

/// Whether the shell itself reads commands from its terminal without editing lines. Its `read` looks
/// almost the same, but asks for another number of bytes; and a program for which it has made room
/// by `exec` has another name.
pub(crate) fn shell_reads_plain_lines(shell: ProcessId) -> bool {
    let Some(stat) = shell.stat() else { return false };
    stat.foreground == stat.group
        && shell.is_named("bash")
        && matches!(reads_terminal(shell.pid, &stat), Some((0, COMMANDS_AT_ONCE)))
}

fn hint(shell: ProcessId) -> Option<InputHint> {
    let stat = shell.stat()?;
    let modes = local_modes(&stat)?;
    let line_wise = modes.contains(LocalModes::ICANON);
    let reads = process::group_members(stat.foreground, stat.terminal)
        .into_iter()
        .any(|process| waits_for_terminal(process.pid, &stat, line_wise));
    // A program that reads has made its settings, perhaps after our first look at them.
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

/// Whether a process is blocked in the kernel's terminal read, or, where the terminal hands out
/// single keys, in waiting for any of several descriptors, as line editors do.
fn waits_for_terminal(pid: u32, shell: &Stat, line_wise: bool) -> bool {
    match blocked_in(pid) {
        Some((SYSCALL_READ, _)) => reads_terminal(pid, shell).is_some(),
        Some((number, _)) => !line_wise && SYSCALLS_WAIT.contains(&number),
        None => false,
    }
}

/// On which descriptor a process is blocked in reading the terminal, and for how many bytes it asks.
fn reads_terminal(pid: u32, shell: &Stat) -> Option<(u64, u64)> {
    let (SYSCALL_READ, [fd, _, count]) = blocked_in(pid)? else { return None };
    let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let is_ours = target.as_os_str() == "/dev/tty" || Some(target) == shell.terminal_path();
    is_ours.then_some((fd, count))
}

/// The system call in which a process is blocked, with its first arguments.
fn blocked_in(pid: u32) -> Option<(u32, [u64; 3])> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some((number, [argument()?, argument()?, argument()?]))
}

#[cfg(target_arch = "x86_64")]
const SYSCALL_READ: u32 = 0;
/// poll, select, pselect6, ppoll, epoll_wait, epoll_pwait.
#[cfg(target_arch = "x86_64")]
const SYSCALLS_WAIT: &[u32] = &[7, 23, 270, 271, 232, 281];
#[cfg(not(target_arch = "x86_64"))]
const SYSCALL_READ: u32 = 63;
/// pselect6, ppoll, epoll_pwait, as on every architecture with the generic table.
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
