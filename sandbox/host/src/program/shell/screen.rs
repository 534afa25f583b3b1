//! Writes the output of a command to stdout.

use std::io::{self, Write as _};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bridge_protocol::methods::shell::OutputProgress;

/// Writes output to stdout as it comes.
pub(super) struct Screen {
    /// For a pipe or file: converts the line ends of a terminal to plain ones. The value says
    /// whether a carriage return is held back.
    pub(super) line_ends: Option<bool>,
}

impl Screen {
    pub(super) fn show(&mut self, piece: &OutputProgress) -> anyhow::Result<()> {
        let bytes = BASE64_STANDARD.decode(&piece.base64)?;
        let mut out = io::stdout().lock();
        match &mut self.line_ends {
            Some(held) => out.write_all(&with_plain_ends(&bytes, held))?,
            None => out.write_all(&bytes)?,
        }
        Ok(out.flush()?)
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.line_ends.take() {
            Some(true) => io::stdout().write_all(b"\r"),
            _ => Ok(()),
        }
    }
}

fn with_plain_ends(bytes: &[u8], held: &mut bool) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len() + 1);
    for &byte in bytes {
        if *held && byte != b'\n' {
            plain.push(b'\r');
        }
        *held = byte == b'\r';
        if !*held {
            plain.push(byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_plain_however_the_bytes_are_cut() {
        let printed = b"a\r\nb\rc\r\r\n\r";
        for cut in 0..=printed.len() {
            let mut held = false;
            let mut plain = with_plain_ends(&printed[..cut], &mut held);
            plain.extend(with_plain_ends(&printed[cut..], &mut held));
            assert!(held);
            assert_eq!(plain, b"a\nb\rc\r\n", "cut at {cut}");
        }
    }
}
