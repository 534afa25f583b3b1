//! The index beside a shell's log: events, each with its offset in the log.
//!
//! The recorder appends one line per event, and the owner reads them, while it runs or after a crash. A line is `kind
//! offset microseconds rest`. Its newline is written with it, so a reader accepts only complete lines. The index
//! contains no secrets.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::marker::Marker;
use process_identity::ProcessId;

/// A line of the index: an event and its offset in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexLine {
    /// Length of the log at the time of the event.
    pub(crate) offset: u64,
    /// When the recorder saw the event.
    pub(crate) at: SystemTime,
    pub(crate) event: IndexEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexEvent {
    /// A recorder opened the log.
    Opened { recorder: ProcessId },
    /// The shell printed a marker, and the recorder has checked its nonce.
    Marker(Marker),
    /// This many bytes were lost at this offset, because of the quota or a full disk.
    Lost { bytes: u64 },
    /// The stream ended; everything before is in the log.
    Closed,
}

impl IndexLine {
    pub(crate) fn new(offset: u64, event: IndexEvent) -> Self {
        Self { offset, at: SystemTime::now(), event }
    }

    pub(crate) fn print(&self) -> Vec<u8> {
        let micros = self.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let (kind, rest) = match &self.event {
            IndexEvent::Opened { recorder } => {
                ('O', format!("{} {}", recorder.pid, recorder.start_time).into_bytes())
            }
            IndexEvent::Marker(marker) => ('M', marker.print()),
            IndexEvent::Lost { bytes } => ('L', bytes.to_string().into_bytes()),
            IndexEvent::Closed => ('C', Vec::new()),
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
        let event = match kind {
            b"O" => {
                let mut numbers = rest.split(|&byte| byte == b' ');
                let (pid, start_time) = (text(numbers.next()?)?, text(numbers.next()?)?);
                IndexEvent::Opened { recorder: ProcessId { pid, start_time } }
            }
            b"M" => IndexEvent::Marker(Marker::parse(rest)?.0),
            b"L" => IndexEvent::Lost { bytes: text(rest)? },
            b"C" => IndexEvent::Closed,
            _ => return None,
        };
        Some(Self { offset, at, event })
    }
}

/// Reads the events that were added since the last call.
#[derive(Debug)]
pub(crate) struct IndexReader {
    file: File,
    partial: Vec<u8>,
}

impl IndexReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, partial: Vec::new() })
    }

    /// Returns all complete new lines. Skips a line that cannot be parsed: one bad byte on the disk must not end a
    /// shell.
    pub(crate) fn read_new(&mut self) -> io::Result<Vec<IndexLine>> {
        let mut chunk = [0; 4096];
        loop {
            let length = self.file.read(&mut chunk)?;
            self.partial.extend_from_slice(&chunk[..length]);
            // Lines written from now on cause another notification.
            if length < chunk.len() {
                break;
            }
        }
        let Some(end) = memchr::memrchr(b'\n', &self.partial) else { return Ok(Vec::new()) };
        let events = self.partial[..end].split(|&byte| byte == b'\n').filter_map(IndexLine::parse);
        let events = events.collect();
        self.partial.drain(..=end);
        Ok(events)
    }
}

/// How an index ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the last line of a recorder, or the index is empty.
    Regular,
    /// Without the last line of a recorder, so the recorder was killed.
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
    // The last line of a recorder is short, and a part of a longer line cannot be mistaken for it.
    let last = &lines[memchr::memrchr(b'\n', lines).map_or(0, |place| place + 1)..];
    let closed = IndexLine::parse(last).is_some_and(|event| event.event == IndexEvent::Closed);
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
            IndexLine {
                offset: 0,
                at,
                event: IndexEvent::Opened { recorder: ProcessId { pid: 7, start_time: 8 } },
            },
            IndexLine { offset: 5, at, event: IndexEvent::Marker(Marker::Start { seq: 1 }) },
            IndexLine { offset: 9, at, event: IndexEvent::Lost { bytes: 3 } },
            IndexLine { offset: 9, at, event: IndexEvent::Closed },
        ];
        let bytes = events.iter().flat_map(IndexLine::print).collect::<Vec<_>>();
        let (first, rest) = bytes.split_at(bytes.len() - 4);
        file.write_all(first).unwrap();
        assert_eq!(reader.read_new().unwrap(), events[..3]);
        assert_eq!(reader.read_new().unwrap(), []);
        file.write_all(rest).unwrap();
        assert_eq!(reader.read_new().unwrap(), events[3..]);
    }
}
