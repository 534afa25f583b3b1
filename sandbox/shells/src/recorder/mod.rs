//! The recorder: a small process per pane that records everything the pane prints.
//!
//! tmux starts it (`pipe-pane -O`) as `sandbox record DIR`, so it lives as long as the pane, whether or not the owner
//! does. It reads the pane's bytes from its standard input, takes the shell's markers out, appends the rest to the
//! log and the events to the index. It waits for nothing but its input and the disk, and it never stops reading: when
//! the quota is reached or the disk is full, it drops bytes and records how many. A recorder that stopped reading
//! would block tmux and the programs behind it, or fill tmux's memory.

pub(crate) mod scanner;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, Read, Write as _},
    os::{fd::AsFd, unix::fs::FileExt as _},
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant, SystemTime},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    ledger::ShellDir,
    marker::{Expected, INTRODUCER, Marker, Seq, TERMINATOR},
    output::index::{End, IndexEvent, IndexLine, end_of},
    recorder::scanner::{Piece, Scanner},
};
use process_identity::ProcessId;

/// The most bytes read from the pipe at once.
const CHUNK: usize = 64 * 1024;
/// Written to the log where a recorder was killed. The number of missing bytes is unknown: what tmux had already
/// passed to the killed recorder, and what was printed before its successor started.
const MISSING: &[u8] = b"\r\n[output is missing here: the recorder was killed]\r\n";
/// How often the log's modification time is updated while bytes are dropped.
const TOUCH_EVERY: Duration = Duration::from_millis(50);
/// The pause before an event is written again to a full disk.
const DISK_RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// How often an event is written to a full disk at the end of the stream before the recorder gives up.
const DISK_RETRIES: u32 = 240;

/// Records `input` into the shell's directory until end of file.
pub fn record(directory: &Path, quota: u64, mut input: impl Read + AsFd) -> io::Result<()> {
    let mut recording = Recording::open(&ShellDir::new(directory.to_owned()), quota)?;
    let mut scanner = Scanner::default();
    let mut chunk = vec![0; CHUNK];
    loop {
        recording.flush_events_until(&input)?;
        let length = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        scanner.feed(&chunk[..length], |piece| recording.take(piece));
        recording.flush_text();
    }
    scanner.finish(|piece| recording.take(piece));
    recording.close()
}

/// The files of one recording, and how much of the stream is accounted for.
struct Recording {
    log: File,
    index: File,
    expected: Digests,
    /// Output for the log that is not written yet: the small pieces of the scanner are written together.
    text: Vec<u8>,
    /// Length of the log.
    offset: u64,
    quota: u64,
    /// The log offset of the latest marker.
    marked: u64,
    /// Bytes dropped at the present offset that the index does not mention yet.
    lost: u64,
    /// When the log's modification time was last updated because bytes were dropped.
    touched: Option<Instant>,
    /// Bytes since the latest marker whose loss is in the index.
    noted: u64,
    /// Lines that could not be written to the index yet.
    unwritten: Vec<u8>,
    /// The latest markers seen: each marker counts once.
    last_start: Option<Seq>,
    last_end: Option<Seq>,
}

impl Recording {
    fn open(directory: &ShellDir, quota: u64) -> io::Result<Self> {
        let log = private_files::append(&directory.log())?;
        // A predecessor that tmux has just disconnected from the pane may still be writing.
        flock(&log, FlockOperation::LockExclusive)?;
        let index = private_files::append(&directory.index())?;
        let end = end_of(&directory.index())?;
        let offset = log.metadata()?.len();
        let mut recording = Self {
            log,
            index,
            expected: Digests { path: directory.expected(), file: None },
            text: Vec::new(),
            offset,
            marked: offset,
            quota,
            lost: 0,
            touched: None,
            noted: 0,
            unwritten: Vec::new(),
            last_start: None,
            last_end: None,
        };
        if end == End::WithinLine {
            recording.unwritten.push(b'\n');
        }
        let recorder = ProcessId::of(process::id()).ok_or(io::ErrorKind::NotFound)?;
        recording.note(IndexEvent::Opened { recorder });
        recording.flush_events();
        if end != End::Regular {
            recording.append(MISSING);
            recording.flush_text();
        }
        Ok(recording)
    }

    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(bytes) => self.append(bytes),
            Piece::Candidate(payload) => match self.confirm(payload) {
                Some(marker) => {
                    self.flush_text();
                    self.restore_length();
                    self.note_lost();
                    self.noted = 0;
                    self.marked = self.offset;
                    let is_end = matches!(marker, Marker::End { .. });
                    self.note(IndexEvent::Marker(marker));
                    // The end must be in the index before later text is in the log, so that readers of that text can
                    // know that the command has ended. The start can wait for the end of the chunk: each write wakes
                    // the owner.
                    if is_end {
                        self.flush_events();
                    }
                }
                None => {
                    self.append(INTRODUCER);
                    self.append(payload);
                    self.append(&[TERMINATOR]);
                }
            },
        }
    }

    /// Returns the marker if it is genuine and not a repetition.
    fn confirm(&mut self, payload: &[u8]) -> Option<Marker> {
        let (marker, nonce) = Marker::parse(payload)?;
        if !self.expected.confirm(&marker, nonce) {
            return None;
        }
        let last = match marker {
            Marker::Start { .. } => &mut self.last_start,
            Marker::End { .. } => &mut self.last_end,
        };
        (last.replace(marker.seq()) != Some(marker.seq())).then_some(marker)
    }

    fn append(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    /// Handles a log that was truncated by somebody else. Counts the missing bytes as lost, as far as they were
    /// printed since the latest marker, and fills the gap with a hole, so that offsets keep their meaning.
    fn restore_length(&mut self) {
        let Ok(length) = self.log.metadata().map(|log| log.len()) else { return };
        if length >= self.offset {
            return;
        }
        self.lost += self.offset - length.max(self.marked);
        if self.log.set_len(self.offset).is_err() {
            self.offset = length;
            self.marked = self.marked.min(length);
        }
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            self.restore_length();
        }
        let room = self.quota.saturating_sub(self.offset);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let text = std::mem::take(&mut self.text);
        let (mut rest, beyond) = text.split_at(text.len().min(room));
        while !rest.is_empty() {
            match self.log.write(rest) {
                Ok(written) => {
                    // There is room again: earlier bytes were dropped at this offset.
                    self.note_lost();
                    self.offset += written as u64;
                    rest = &rest[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let lost = (rest.len() + beyond.len()) as u64;
        if lost > 0 {
            self.lost += lost;
            self.touch();
            // Record a loss only when it has at least doubled: waiters hear early, and the index stays short.
            if self.lost >= self.noted {
                self.note_lost();
            }
        }
        self.text = text;
        self.text.clear();
    }

    /// Updates the log's modification time: the log does not grow, but callers that wait for silence must see that
    /// there is output.
    fn touch(&mut self) {
        if self.touched.is_none_or(|touched| touched.elapsed() > TOUCH_EVERY) {
            self.touched = Some(Instant::now());
            // Without the update, a wait for silence ends a little early.
            let _ = self.log.set_modified(SystemTime::now());
        }
    }

    fn note_lost(&mut self) {
        if self.lost > 0 {
            let bytes = std::mem::take(&mut self.lost);
            self.noted += bytes;
            self.note(IndexEvent::Lost { bytes });
        }
    }

    fn note(&mut self, event: IndexEvent) {
        self.unwritten.extend_from_slice(&IndexLine::new(self.offset, event).print());
    }

    /// Writes events to the index, and retries until they are written or there is input to read. Callers wait for
    /// these events.
    fn flush_events_until(&mut self, input: &impl AsFd) -> io::Result<()> {
        self.flush_events();
        while !self.unwritten.is_empty() {
            let mut inputs = [PollFd::new(input, PollFlags::IN)];
            match poll(&mut inputs, Some(&DISK_RETRY)) {
                Ok(0) => self.flush_events(),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes events to the index. They are small and matter more than output, so they are kept until the disk
    /// accepts them.
    fn flush_events(&mut self) {
        while !self.unwritten.is_empty() {
            match self.index.write(&self.unwritten) {
                Ok(written) => drop(self.unwritten.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn close(mut self) -> io::Result<()> {
        self.flush_text();
        self.note_lost();
        self.note(IndexEvent::Closed);
        for _ in 0..DISK_RETRIES {
            self.flush_events();
            if self.unwritten.is_empty() {
                return Ok(());
            }
            // This poll is only a pause; it does no harm if a signal ends it early.
            let _ = poll(&mut [], Some(&DISK_RETRY));
        }
        Err(io::Error::new(
            io::ErrorKind::StorageFull,
            "the index could not be completed: the disk is full",
        ))
    }
}

/// The file in which the owner stores the digests that the next markers must match.
struct Digests {
    path: PathBuf,
    /// Kept open, because it is read for each marker.
    file: Option<File>,
}

impl Digests {
    fn confirm(&mut self, marker: &Marker, nonce: &[u8]) -> bool {
        self.read().is_some_and(|expected| expected.confirms(marker, nonce)) || {
            // The file may have been replaced.
            self.file = None;
            self.read().is_some_and(|expected| expected.confirms(marker, nonce))
        }
    }

    fn read(&mut self) -> Option<Expected> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(File::open(&self.path).ok()?),
        };
        let mut line = [0; 256];
        let length = file.read_at(&mut line, 0).ok()?;
        Expected::parse(str::from_utf8(&line[..length]).ok()?)
    }
}
