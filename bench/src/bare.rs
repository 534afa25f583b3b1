//! The floors for shells: a bash in a bare pseudo-terminal and a bash in a bare tmux. Commands are typed into
//! both.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::pty::{Winsize, openpty};

/// The prompt that shows that the bash is ready.
const PROMPT: &[u8] = b"READY> ";
const COLUMNS: u16 = 160;
const ROWS: u16 = 48;

/// A terminal with a shell in it.
pub trait Terminal {
    fn type_line(&mut self, line: &str) -> Result<()>;
    /// Waits for output, and returns the next bytes of it.
    fn shown(&mut self) -> Result<Vec<u8>>;

    /// Runs a command, and returns the time until the bytes `ending` are shown and the time until the next
    /// prompt.
    fn round_trip(&mut self, command: &str, ending: &[u8]) -> Result<(Duration, Duration)> {
        let begun = Instant::now();
        self.type_line(command)?;
        let rest = self.until(ending, Vec::new())?;
        let shown = begun.elapsed();
        self.until(PROMPT, rest)?;
        Ok((shown, begun.elapsed()))
    }

    /// Reads until the bytes `wanted`, and returns the bytes after them.
    fn until(&mut self, wanted: &[u8], mut seen: Vec<u8>) -> Result<Vec<u8>> {
        let mut from = 0;
        loop {
            if let Some(at) = memchr::memmem::find(&seen[from..], wanted) {
                return Ok(seen.split_off(from + at + wanted.len()));
            }
            from = seen.len().saturating_sub(wanted.len());
            seen.extend(self.shown()?);
        }
    }
}

/// A bash in a pseudo-terminal, without tmux.
pub struct BarePty {
    bash: Child,
    terminal: File,
    buffer: Vec<u8>,
}

impl BarePty {
    pub fn start() -> Result<Self> {
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None)?;
        let inside = File::from(pair.slave);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "bash", "--norc", "-i"]);
        command.stdin(inside.try_clone()?).stdout(inside.try_clone()?).stderr(inside);
        let bash = with_prompt(&mut command).spawn()?;
        let mut started =
            Self { bash, terminal: File::from(pair.master), buffer: vec![0; 64 * 1024] };
        started.until(PROMPT, Vec::new())?;
        Ok(started)
    }

    /// The time until the output of `cat` has been written to a file.
    pub fn flood(&mut self, big: &Path, wanted: u64, into: &Path) -> Result<Duration> {
        let mut file = File::create(into)?;
        let begun = Instant::now();
        self.type_line(&format!("cat {}", big.display()))?;
        // The count includes the echo of the command, so only the prompt after the output shows the end.
        let (mut written, mut tail) = (0, Vec::new());
        while written < wanted || !tail.ends_with(PROMPT) {
            let count = self.terminal.read(&mut self.buffer)?;
            file.write_all(&self.buffer[..count])?;
            written += count as u64;
            tail.extend_from_slice(&self.buffer[count.saturating_sub(PROMPT.len())..count]);
            tail.drain(..tail.len().saturating_sub(PROMPT.len()));
        }
        Ok(begun.elapsed())
    }
}

impl Terminal for BarePty {
    fn type_line(&mut self, line: &str) -> Result<()> {
        Ok(write!(self.terminal, "{line}\r")?)
    }

    fn shown(&mut self) -> Result<Vec<u8>> {
        let count = self.terminal.read(&mut self.buffer)?;
        ensure!(count > 0, "the shell has ended");
        Ok(self.buffer[..count].to_vec())
    }
}

impl Drop for BarePty {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

/// A bash in a tmux server of its own, used through a control client that receives the output.
pub struct BareTmux {
    client: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BareTmux {
    /// Starts the server, and returns at the first prompt.
    pub fn start(socket: PathBuf) -> Result<Self> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(socket).args(["-f", "/dev/null", "-C", "new-session"]);
        command.args(["-x", &COLUMNS.to_string(), "-y", &ROWS.to_string()]);
        command.args(["bash", "--norc", "-i"]);
        command.env_remove("TMUX").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = with_prompt(&mut command).spawn().context("tmux is needed")?;
        let input = client.stdin.take().context("stdin is piped")?;
        let output = BufReader::new(client.stdout.take().context("stdout is piped")?);
        let mut started = Self { client, input, output };
        started.until(PROMPT, Vec::new())?;
        Ok(started)
    }

    /// The time until the output of `cat` is in the file to which `pipe-pane` writes.
    pub fn flood(&mut self, big: &Path, wanted: u64, into: &Path) -> Result<Duration> {
        writeln!(self.input, "refresh-client -f no-output")?;
        writeln!(self.input, "pipe-pane -O 'exec cat >{}'", into.display())?;
        let begun = Instant::now();
        self.type_line(&format!("cat {}", big.display()))?;
        while fs::metadata(into).map_or(0, |file| file.len()) < wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
        let elapsed = begun.elapsed();
        writeln!(self.input, "pipe-pane")?;
        Ok(elapsed)
    }
}

impl Terminal for BareTmux {
    fn type_line(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.input, "send-keys -l '{line}'\nsend-keys Enter")?)
    }

    fn shown(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            ensure!(self.output.read_until(b'\n', &mut line)? > 0, "tmux has ended");
            if let Some(text) = line.strip_prefix(b"%output ") {
                let text = text.splitn(2, |&byte| byte == b' ').nth(1).unwrap_or_default();
                return Ok(unescaped(text.strip_suffix(b"\n").unwrap_or(text)));
            }
        }
    }
}

impl Drop for BareTmux {
    fn drop(&mut self) {
        let _ = writeln!(self.input, "kill-server");
        // tmux keeps the server alive until the control client has read everything.
        let _ = std::io::copy(&mut self.output, &mut std::io::sink());
        let _ = self.client.wait();
    }
}

fn with_prompt(command: &mut Command) -> &mut Command {
    command.env("PS1", str::from_utf8(PROMPT).expect("ASCII")).env("TERM", "screen-256color")
}

/// Decodes `%output` of tmux, which prints control characters and backslashes as three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(value) if byte == b'\\' => {
                out.push(value);
                rest = &after[3..];
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_of_control_characters_are_decoded() {
        assert_eq!(unescaped(br"a\015\012b\134c"), b"a\r\nb\\c");
    }

    #[test]
    fn both_floors_show_the_output_of_a_command() {
        let directory = tempfile::tempdir().unwrap();
        let mut pty = BarePty::start().unwrap();
        pty.round_trip("echo hi", b"\rhi\r\n").unwrap();
        let mut tmux = BareTmux::start(directory.path().join("tmux")).unwrap();
        tmux.round_trip("echo hi", b"\rhi\r\n").unwrap();
    }
}
