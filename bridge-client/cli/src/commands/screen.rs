//! Prints the output of a command while it runs.
//!
//! The daemon drops pieces of output when this program reads slowly. The offsets of the pieces show what is missing, and
//! the missing bytes are read from the shell's log, so the printed output has no gaps.

use bridge_client::Client;
use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::shell::{self, ShellName};

use super::route::Route;
use super::{decoded, typed};
use crate::failure::Failure;
use crate::output::{self, Output, Style};

/// How many missing bytes to read with one request.
const READ: u64 = 1 << 20;

/// Prints output in the order of the log, and remembers the offset that it has reached.
pub struct Screen<'a> {
    client: &'a Client,
    route: &'a Route,
    pub shell: ShellName,
    /// The offset of the next byte to print. `None` before the first piece.
    pub next: Option<u64>,
    line_ends: Option<LineEnds>,
    pub output: &'a mut Output,
}

impl<'a> Screen<'a> {
    pub fn new(
        client: &'a Client,
        route: &'a Route,
        shell: ShellName,
        next: Option<u64>,
        raw: bool,
        output: &'a mut Output,
    ) -> Self {
        // A terminal gets the output unchanged. A pipe gets plain line ends.
        let line_ends = (!raw && output.style == Style::Pipe).then(LineEnds::default);
        Self { client, route, shell, next, line_ends, output }
    }

    /// Calls a method of the runtime whose output is shown.
    pub async fn call<M: MethodType>(&self, params: &M::Params) -> Result<M::Result, Failure> {
        let params = self.route.added_to(params);
        typed::<M>(&self.client.call_raw(M::NAME, Some(params), None).await?)
    }

    /// Prints a piece with this offset in the log, after the missing bytes before it.
    pub async fn show_at(&mut self, start: u64, bytes: &[u8], length: u64) -> Result<(), Failure> {
        self.fill_up_to(start).await?;
        self.show(bytes).await?;
        self.next = Some(start + length);
        Ok(())
    }

    /// Prints the part of a line end that was held back.
    pub async fn end(&mut self) -> Result<(), Failure> {
        if let Some(line_ends) = &mut self.line_ends {
            let rest = line_ends.finish();
            self.output.bytes(rest).await?;
        }
        Ok(())
    }

    /// Reads and prints the bytes between the last printed one and this offset.
    pub async fn fill_up_to(&mut self, offset: u64) -> Result<(), Failure> {
        while let Some(from) = self.next.filter(|next| *next < offset) {
            let params = shell::ReadParams {
                shell: self.shell.clone(),
                from: Some(from),
                bytes: Some(READ.min(offset - from)),
                raw: true,
                ..shell::ReadParams::default()
            };
            let read = self.call::<shell::Read>(&params).await?;
            let bytes = decoded::<shell::Read>(&read.base64.unwrap_or_default())?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.show(&bytes).await?;
            self.next = Some(from + bytes.len() as u64);
        }
        Ok(())
    }

    pub async fn show(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.line_ends {
            Some(line_ends) => {
                let bytes = line_ends.plain(bytes);
                self.output.bytes(&bytes).await
            }
            None => self.output.bytes(bytes).await,
        }
    }
}

/// Warns that output was lost, if any was.
pub fn complain_of_lost(bytes: u64, shell: &ShellName) {
    if bytes > 0 {
        output::complain(&format!(
            "{bytes} bytes of output were lost: the log of shell {shell}, or its disk, is full (see \
             --log-quota of bridge-daemon); close the shell to begin a new log"
        ));
    }
}

/// Warns that a cell has printed more than is kept, if it has.
pub fn complain_of_left_out(bytes: u64) {
    if bytes > 0 {
        output::complain(&format!(
            "{bytes} bytes of output were omitted: only the beginning and the end of very long output are kept; let \
             the cell write to a file"
        ));
    }
}

/// Turns the line ends of a terminal (`\r\n`) into plain ones, wherever the pieces are cut.
#[derive(Debug, Default)]
struct LineEnds {
    held: bool,
}

impl LineEnds {
    fn plain(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            if self.held && byte != b'\n' {
                plain.push(b'\r');
            }
            self.held = byte == b'\r';
            if !self.held {
                plain.push(byte);
            }
        }
        plain
    }

    fn finish(&mut self) -> &'static [u8] {
        match std::mem::take(&mut self.held) {
            true => b"\r",
            false => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_plain_however_the_bytes_are_cut() {
        let printed = b"a\r\nb\rc\r\r\n\r";
        for cut in 0..=printed.len() {
            let mut line_ends = LineEnds::default();
            let mut plain = line_ends.plain(&printed[..cut]);
            plain.extend(line_ends.plain(&printed[cut..]));
            plain.extend(line_ends.finish());
            assert_eq!(plain, b"a\nb\rc\r\n\r", "cut at {cut}");
        }
    }
}
