//! Reads a shell's log: any range, head and tail, or live.

use std::{
    fs::File,
    io,
    ops::Range,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use crate::{Error, Result};
use crate::{
    output::boundary,
    output::watch::{FileWatch, Watcher},
};

/// The most bytes that one read returns; a larger range is cut.
pub const READ_LIMIT: u64 = 16 << 20;

/// Everything that a shell has printed, byte for byte. Offsets count from the creation of the shell. The log can
/// still be read after its shell was closed and the file was unlinked.
#[derive(Debug, Clone)]
pub struct Log {
    path: PathBuf,
    file: Arc<File>,
    watcher: Arc<Watcher>,
}

/// A part of the log whose middle may be omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The first bytes, or all of them.
    pub head: Vec<u8>,
    /// The range that is omitted; empty if nothing is.
    pub omitted: Range<u64>,
    /// The last bytes; empty if everything is in `head`.
    pub tail: Vec<u8>,
}

/// Follows the log from an offset on. Nothing is queued: a subscriber that stops reading costs nothing and delays
/// nobody, and finds everything in the log when it continues.
#[derive(Debug)]
pub struct Subscription {
    file: Arc<File>,
    offset: u64,
    watch: FileWatch,
}

impl Log {
    pub(crate) fn open(path: PathBuf, watcher: &Arc<Watcher>) -> Result<Self> {
        let file = File::open(&path).map_err(Error::io("opening the log"))?;
        Ok(Self { path, file: Arc::new(file), watcher: Arc::clone(watcher) })
    }

    /// The path of the log file.
    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Bytes recorded so far.
    pub fn len(&self) -> Result<u64> {
        Ok(self.growth()?.0)
    }

    /// Whether nothing has been recorded yet.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The length, and the time of the latest output, whether recorded or dropped.
    pub(crate) fn growth(&self) -> Result<(u64, SystemTime)> {
        let metadata = self.file.metadata().map_err(Error::io("looking at the log"))?;
        let modified = metadata.modified().map_err(Error::io("looking at the log's time"))?;
        Ok((metadata.len(), modified))
    }

    /// Returns the bytes of a range, as far as they exist, at most 16 MiB (`READ_LIMIT`).
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start).min(READ_LIMIT);
        let length = length.min(self.len()?.saturating_sub(range.start));
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let read = self.file.read_at_most(&mut bytes, range.start)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Returns the beginning and the end of a range, at most `bytes` in total, in complete lines where possible.
    pub fn view(&self, range: Range<u64>, bytes: u64) -> Result<View> {
        let length = range.end.saturating_sub(range.start);
        if length <= bytes {
            let head = self.read(range.clone())?;
            return Ok(View { head, omitted: range.end..range.end, tail: Vec::new() });
        }
        let mut omitted = range.start + bytes / 2..range.end - bytes.div_ceil(2);
        let mut head = self.read(range.start..omitted.start)?;
        let mut tail = self.read(omitted.end..range.end)?;
        head.truncate(boundary::whole_lines(&head));
        tail.drain(..boundary::first_line(&tail));
        omitted.start = range.start + head.len() as u64;
        omitted.end = range.end - tail.len() as u64;
        Ok(View { head, omitted, tail })
    }

    /// Follows the log from this offset on.
    pub fn subscribe(&self, offset: u64) -> Result<Subscription> {
        Ok(Subscription { file: Arc::clone(&self.file), offset, watch: self.watch()? })
    }

    pub(crate) fn watch(&self) -> Result<FileWatch> {
        // By the file descriptor, since the file may be unlinked.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        self.watcher.watch(path.as_ref()).map_err(Error::io("watching the log"))
    }
}

impl View {
    /// Head and tail, with a note between them about what is omitted and where it is.
    pub fn with_note(&self) -> Vec<u8> {
        let mut text = self.head.clone();
        if !self.omitted.is_empty() {
            let Range { start, end } = self.omitted;
            let note =
                format!("\n[{} bytes omitted: offsets {start} to {end} of the log]\n", end - start);
            text.extend_from_slice(note.as_bytes());
            text.extend_from_slice(&self.tail);
        }
        text
    }
}

impl Subscription {
    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Waits for the next bytes and returns at least one and at most `buffer.len()`. It never reports the end of the
    /// output: a caller that knows of it drops the subscription. Cancelling loses nothing.
    pub async fn next(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.grown().await?;
        let read = self.file.read_at_most(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }

    /// Returns as soon as there is a byte to read.
    pub(crate) async fn grown(&self) -> Result<()> {
        loop {
            let grown = self.watch.grown();
            let length = self.file.metadata().map_err(Error::io("looking at the log"))?.len();
            if length > self.offset {
                return Ok(());
            }
            grown.await;
        }
    }
}

/// Reads at an offset until the buffer is full or the file ends.
trait ReadAtMost {
    fn read_at_most(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
}

impl ReadAtMost for File {
    fn read_at_most(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading the log")(error)),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_view_keeps_both_ends_and_names_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, b"0123456789").unwrap();
        let log = Log::open(path, &Arc::new(Watcher::start().unwrap())).unwrap();
        let view = log.view(1..9, 5).unwrap();
        assert_eq!((view.head.as_slice(), view.tail.as_slice()), (&b"12"[..], &b"678"[..]));
        assert_eq!(view.omitted, 3..6);
        let note = String::from_utf8(view.with_note()).unwrap();
        assert_eq!(note, "12\n[3 bytes omitted: offsets 3 to 6 of the log]\n678");
        assert_eq!(log.view(0..10, 10).unwrap().with_note(), b"0123456789");
        assert_eq!(log.read(8..100).unwrap(), b"89");
    }

    #[tokio::test]
    async fn a_view_is_cut_between_lines_or_else_characters() {
        let directory = tempfile::tempdir().unwrap();
        for (bytes, head, tail) in [
            ("one\r\ntwo\r\nthree\r\nfour\r\n", "one\r\n", "four\r\n"),
            ("äääääääääääääää", "äää", "ääää"),
        ] {
            let path = directory.path().join("log");
            fs::write(&path, bytes).unwrap();
            let log = Log::open(path, &Arc::new(Watcher::start().unwrap())).unwrap();
            let view = log.view(0..bytes.len() as u64, 15).unwrap();
            assert_eq!(
                (view.head.as_slice(), view.tail.as_slice()),
                (head.as_bytes(), tail.as_bytes())
            );
            let omitted = head.len() as u64..(bytes.len() - tail.len()) as u64;
            assert_eq!(view.omitted, omitted);
        }
    }

    #[tokio::test]
    async fn a_subscriber_sees_growth_without_polling() {
        use std::io::Write as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut file = File::create(&path).unwrap();
        let log = Log::open(path, &Arc::new(Watcher::start().unwrap())).unwrap();
        let mut subscription = log.subscribe(0).unwrap();
        let mut buffer = [0; 4];
        let reading = tokio::spawn(async move {
            let first = subscription.next(&mut buffer).await.unwrap();
            let first = buffer[..first].to_vec();
            let second = subscription.next(&mut buffer).await.unwrap();
            [first, buffer[..second].to_vec()].concat()
        });
        tokio::task::yield_now().await;
        file.write_all(b"abcdef").unwrap();
        let read = tokio::time::timeout(std::time::Duration::from_secs(5), reading).await;
        assert_eq!(read.expect("growth is noticed").unwrap(), b"abcdef");
    }
}
