//! The event index beside a shell's log: what happened, and at which byte of the log.
//!
//! The recorder appends one line per event and the owner reads them, while it runs or after a
//! crash. A line is `kind offset microseconds rest`; its newline is written with it, so a reader
//! takes only whole lines. Nothing in here is secret.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::marker::Marker;
use process_identity::ProcessId;

/// A line of the index: something that happened at a place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Length of the log when it happened.
    pub(crate) offset: u64,
    /// When the recorder saw it.
    pub(crate) at: SystemTime,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A recorder began to write.
    Opened { recorder: ProcessId },
    /// The shell said something; the recorder has confirmed that it was the shell.
    Marker(Marker),
    /// So many bytes could not be kept here, because of the quota or a full disk.
    Lost { bytes: u64 },
    /// The stream ended; everything before it is in the log.
    Closed,
}

impl Line {
    pub(crate) fn new(offset: u64, what: What) -> Self {
        Self { offset, at: SystemTime::now(), what }
    }

    pub(crate) fn print(&self) -> Vec<u8> {
        let micros = self.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let (kind, rest) = match &self.what {
            What::Opened { recorder } => {
                ('O', format!("{} {}", recorder.pid, recorder.start_time).into_bytes())
            }
            What::Marker(marker) => ('M', marker.print()),
            What::Lost { bytes } => ('L', bytes.to_string().into_bytes()),
            What::Closed => ('C', Vec::new()),
        };
        let mut line = format!("{kind} {} {micros} ", self.offset).into_bytes();
        line.extend_from_slice(&rest);
        line.push(b'\n');
        line
    }

    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(4, |&byte| byte == b' ');
        let kind = fields.next()?;
        let offset = text(fields.next()?)?;
        let at = UNIX_EPOCH + Duration::from_micros(text(fields.next()?)?);
        let rest = fields.next()?;
        let what = match kind {
            b"O" => {
                let mut numbers = rest.split(|&byte| byte == b' ');
                let (pid, start_time) = (text(numbers.next()?)?, text(numbers.next()?)?);
                What::Opened { recorder: ProcessId { pid, start_time } }
            }
            b"M" => What::Marker(Marker::parse(rest)?.0),
            b"L" => What::Lost { bytes: text(rest)? },
            b"C" => What::Closed,
            _ => return None,
        };
        Some(Self { offset, at, what })
    }
}

/// Reads the events that have been added since the last look.
#[derive(Debug)]
pub(crate) struct IndexReader {
    file: File,
    partial: Vec<u8>,
}

impl IndexReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, partial: Vec::new() })
    }

    /// All whole new lines. A line that we cannot read is skipped: one bad byte on the disk must
    /// not end a shell.
    pub(crate) fn read_new(&mut self) -> io::Result<Vec<Line>> {
        let mut chunk = [0; 4096];
        loop {
            let length = self.file.read(&mut chunk)?;
            self.partial.extend_from_slice(&chunk[..length]);
            // What is written meanwhile is for another look, about which we will hear.
            if length < chunk.len() {
                break;
            }
        }
        let Some(end) = memchr::memrchr(b'\n', &self.partial) else { return Ok(Vec::new()) };
        let events = self.partial[..end].split(|&byte| byte == b'\n').filter_map(Line::parse);
        let events = events.collect();
        self.partial.drain(..=end);
        Ok(events)
    }
}

/// How an index ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the last word of a recorder, or it is empty.
    Regular,
    /// The last recorder has ended without a word, so that it was killed.
    CutOff,
    /// In the middle of a line.
    WithinLine,
}

pub(crate) fn end_of(path: &Path) -> io::Result<End> {
    const ENOUGH: u64 = 64;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut end = vec![0; usize::try_from(length.min(ENOUGH)).unwrap_or_default()];
    file.read_exact_at(&mut end, length.saturating_sub(ENOUGH))?;
    if end.is_empty() {
        return Ok(End::Regular);
    }
    let Some(lines) = end.strip_suffix(b"\n") else { return Ok(End::WithinLine) };
    // The line of a regular end is short; a part of a longer one cannot be taken for it.
    let last = &lines[memchr::memrchr(b'\n', lines).map_or(0, |place| place + 1)..];
    let closed = Line::parse(last).is_some_and(|event| event.what == What::Closed);
    Ok(if closed { End::Regular } else { End::CutOff })
}

fn text<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn events_are_read_once_and_only_when_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let mut file = File::create(&path).unwrap();
        let mut reader = IndexReader::open(&path).unwrap();
        let at = UNIX_EPOCH + Duration::from_micros(1_234_567);
        let events = [
            Line {
                offset: 0,
                at,
                what: What::Opened { recorder: ProcessId { pid: 7, start_time: 8 } },
            },
            Line { offset: 5, at, what: What::Marker(Marker::Start { seq: 1 }) },
            Line { offset: 9, at, what: What::Lost { bytes: 3 } },
            Line { offset: 9, at, what: What::Closed },
        ];
        let bytes = events.iter().flat_map(Line::print).collect::<Vec<_>>();
        let (first, rest) = bytes.split_at(bytes.len() - 4);
        file.write_all(first).unwrap();
        assert_eq!(reader.read_new().unwrap(), events[..3]);
        assert_eq!(reader.read_new().unwrap(), []);
        file.write_all(rest).unwrap();
        assert_eq!(reader.read_new().unwrap(), events[3..]);
    }
}
