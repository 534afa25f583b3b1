//! Facts about one process from `/proc`.

use std::{
    fs,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::PathBuf,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

use crate::{ProcessId, register_readable};

/// The fields of `/proc/PID/stat` that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its state, a letter: `R` for running, `S` for sleeping, `Z` for a zombie, and so on.
    pub state: u8,
    /// The number of its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its process session.
    pub session: i32,
    /// The device number of its terminal.
    pub terminal: i32,
    /// The foreground process group of its terminal.
    pub foreground: i32,
    /// The processor time that it has used so far, in clock ticks.
    pub cpu_ticks: u64,
    /// When it started, in clock ticks since the start of the machine.
    pub start_time: u64,
}

impl Stat {
    /// Reads the entry of the process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        // Linux returns it in one read, and it has about fifty numbers.
        let mut text = [0; 2048];
        let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
        Self::parse(&text[..length])
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The name in parentheses may contain any character, so the fields start after the last parenthesis.
        let rest = text.get(memchr::memrchr(b')', text)? + 2..)?;
        let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
        let signed = |index: usize| fields.get(index)?.parse::<i32>().ok();
        let unsigned = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: signed(1)?,
            group: signed(2)?,
            session: signed(3)?,
            terminal: signed(4)?,
            foreground: signed(5)?,
            cpu_ticks: unsigned(11)? + unsigned(12)?,
            start_time: unsigned(19)?,
        })
    }

    /// Whether this entry belongs to a child of `parent`.
    pub fn is_child_of(&self, parent: ProcessId) -> bool {
        i64::from(self.parent) == i64::from(parent.pid)
    }

    /// Whether the process has ended. A zombie has: it only waits for its parent to reap it.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Returns the path of its controlling terminal, from the device number.
    pub fn terminal_path(&self) -> Option<PathBuf> {
        let device = u32::try_from(self.terminal).ok()?;
        let major = (device >> 8) & 0xfff;
        let minor = (device & 0xff) | ((device >> 12) & 0xfff00);
        // Pseudo-terminals have the major numbers 136 to 143, with 256 terminals each.
        (136..144)
            .contains(&major)
            .then(|| format!("/dev/pts/{}", (major - 136) * 256 + minor).into())
    }
}

impl ProcessId {
    /// Identifies the process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Stat::of(pid).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether the process is alive; a zombie is not.
    pub fn is_alive(&self) -> bool {
        self.stat().is_some_and(|stat| !stat.has_ended())
    }

    /// Its entry in `/proc`; `None` if the process is gone.
    pub fn stat(&self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| stat.start_time == self.start_time)
    }

    /// Whether its program has this name, of which Linux keeps 15 bytes.
    pub fn is_named(&self, name: &str) -> bool {
        self.read("comm").strip_suffix(b"\n") == Some(name.as_bytes())
    }

    /// Whether it has this word among its arguments.
    pub fn has_argument(&self, word: &[u8]) -> bool {
        self.read("cmdline").split(|&byte| byte == 0).any(|argument| argument == word)
    }

    /// Whether it was started with this entry (`NAME=value`) in its environment.
    pub fn has_variable(&self, entry: &[u8]) -> bool {
        self.read("environ").split(|&byte| byte == 0).any(|variable| variable == entry)
    }

    /// Reads a file of its directory in `/proc`. Empty if the process is gone, or the file may not be read.
    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(format!("/proc/{}/{name}", self.pid)).unwrap_or_default()
    }

    /// Opens a descriptor that becomes readable when the process ends; `None` if it has ended already.
    pub fn open_pidfd(&self) -> io::Result<Option<AsyncFd<OwnedFd>>> {
        let Some(pid) = raw(self.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The number may have been reused before it was opened; afterwards it cannot be.
        if self.stat().is_none() {
            return Ok(None);
        }
        register_readable(fd).map(Some)
    }

    /// Sends a signal to exactly this process; does nothing if it has ended.
    pub fn send(&self, signal: Signal) {
        let Some(pid) = raw(self.pid) else { return };
        if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty())
            && self.stat().is_some()
        {
            // This fails if the process has ended in the meantime or now belongs to another user; nothing can be done
            // about either.
            let _ = pidfd_send_signal(fd, signal);
        }
    }

    /// Returns when the process has ended.
    pub async fn ended(&self) -> io::Result<()> {
        if let Some(fd) = self.open_pidfd()? {
            fd.readable().await?.retain_ready();
        }
        Ok(())
    }
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_fields() {
        for name in ["cat", "a b", "a) b) c", "x) S (y", ") Z 1"] {
            let line = format!(
                "42 ({name}) S 1 42 40 34817 43 4194304 1 2 3 4 5 6 7 8 20 0 1 0 999 0 0\n"
            );
            let stat = Stat::parse(line.as_bytes()).unwrap();
            assert_eq!((stat.parent, stat.group, stat.session), (1, 42, 40), "{name}");
            assert_eq!((stat.foreground, stat.cpu_ticks, stat.start_time), (43, 11, 999), "{name}");
            assert_eq!(stat.terminal_path(), Some("/dev/pts/1".into()), "{name}");
            assert!(!stat.has_ended(), "{name}");
            for state in [" Z ", " X "] {
                let ended = line.replacen(" S 1 42", &format!("{state}1 42"), 1);
                assert!(Stat::parse(ended.as_bytes()).unwrap().has_ended(), "{ended}");
            }
        }
        assert_eq!(Stat::parse(b"42 (cat)"), None, "cut off");
    }

    #[test]
    fn a_process_with_another_start_time_is_somebody_else() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert!(!ProcessId { start_time: me.start_time + 1, ..me }.is_alive());
    }

    #[test]
    fn names_arguments_and_variables_are_whole_words() {
        let mut child = crate::tests::started("names_test", ("PROCESS_IDENTITY_TEST", "a b"));
        let process = ProcessId::of(child.id()).unwrap();
        assert!(process.is_named("sh") && !process.is_named("s"));
        assert!(process.has_argument(b"names_test") && !process.has_argument(b"names"));
        assert!(process.has_variable(b"PROCESS_IDENTITY_TEST=a b"));
        assert!(!process.has_variable(b"PROCESS_IDENTITY_TEST=a"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_named("sh") && !process.has_argument(b"names_test"));
    }
}
