//! Reads bytes, lines of text, and media.
//!
//! The limit applies to what is returned, not to the size of the file: a few lines at the beginning
//! or the end of a log of many gigabytes are read without the rest.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::fs::FileExt;

use memchr::{memchr, memrchr};
use rustix::fs::fstat;

use super::document::{Document, LineEnds, SNIFFED_BYTES};
use super::media::is_media;
use super::stat::Kind;
use super::{
    Encoding, Error, LineEnding, VERSIONED_BYTES, Version, Versioned, WorkspacePath,
    media_type_by_content, media_type_by_name, select_lines,
};

/// The default limit for the bytes that a read returns.
pub const READ_BYTES: u64 = 10 * 1024 * 1024;

/// Block size for scanning large files.
const BLOCK: usize = 64 * 1024;

/// Which lines to read. Numbers begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRange {
    /// The whole file.
    All,
    /// From the first to the last, both included. Without a last, or with one beyond the end, to
    /// the end.
    Between {
        /// The first line.
        first: usize,
        /// The last line.
        last: Option<usize>,
    },
    /// This many lines at the end.
    Last(usize),
}

/// Lines of a text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The lines with their ends as they are in the file, without a byte order mark.
    pub content: String,
    /// Number of the first line in `content`. `None` for the last lines of a file that was not read
    /// from its beginning.
    pub first_line: Option<usize>,
    /// Lines of the whole file, if the whole file was read.
    pub total_lines: Option<usize>,
    /// How the file is encoded.
    pub encoding: Encoding,
    /// How most of the lines that were read end; `None` if no line has an end.
    pub line_ending: Option<LineEnding>,
}

/// The result of [`read_any`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(Text),
    /// An image, audio, video or PDF file.
    Media {
        /// The media type.
        media_type: &'static str,
        /// The whole file.
        bytes: Vec<u8>,
    },
    /// Any other content, which is named but not returned.
    Binary {
        /// The media type, `application/octet-stream` if it is unknown.
        media_type: &'static str,
        /// Bytes of the file.
        size: u64,
    },
}

/// Reads a whole file of at most `limit` bytes.
pub fn read_bytes(path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, Error> {
    let (file, size) = open_file(path)?;
    read_whole(path, &file, size, limit)
}

/// Reads lines of a text file, at most `limit` bytes of them.
pub fn read_text(path: &WorkspacePath, range: LineRange, limit: u64) -> Result<Text, Error> {
    check_range(path, range)?;
    let (file, size) = open_file(path)?;
    text_of(path, &Opened { file: &file, size, limit }, range, &mut |_| {})
}

/// Reads text as text, media as data, and only the type of anything else. The content decides; the
/// name helps where the content is not recognised.
pub fn read_any(path: &WorkspacePath, range: LineRange, limit: u64) -> Result<Content, Error> {
    let (file, size) = open_file(path)?;
    any_of(path, &Opened { file: &file, size, limit }, range, &mut |_| {})
}

/// Reads like [`read_any`], and returns the version of the whole file, even if only some lines were
/// asked for.
pub fn read_any_versioned(
    path: &WorkspacePath,
    range: LineRange,
    limit: u64,
) -> Result<Versioned<Content>, Error> {
    let (file, size) = open_file(path)?;
    let mut version = None;
    let before = changes(path, &file)?;
    let opened = Opened { file: &file, size, limit };
    // If the whole file was read, hash exactly these bytes.
    let content = any_of(path, &opened, range, &mut |bytes| version = Some(Version::of(bytes)))?;
    if version.is_none() && size <= VERSIONED_BYTES {
        let hashed = Version::of_file(&file).map_err(|source| path.failed(source))?;
        // The file was read a second time for the hash. The version is valid for both reads only if
        // nobody wrote in between.
        version = (changes(path, &file)? == before).then_some(hashed);
    }
    Ok(Versioned { content, version })
}

/// An open file, and the limit for reading it.
struct Opened<'a> {
    file: &'a File,
    size: u64,
    limit: u64,
}

/// Reads like [`read_any`]. Calls `seen` with the bytes if all of them were read.
fn any_of(
    path: &WorkspacePath,
    opened: &Opened<'_>,
    range: LineRange,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Content, Error> {
    let Opened { file, size, limit } = *opened;
    let head = read_at(path, file, 0, SNIFFED_BYTES)?;
    let by_content = media_type_by_content(&head);
    let media = |media_type, seen: &mut dyn FnMut(&[u8])| {
        // The file may already have been read as text.
        (&*file).rewind().map_err(|source| path.failed(source))?;
        let bytes = read_whole(path, file, size, limit)?;
        seen(&bytes);
        Ok(Content::Media { media_type, bytes })
    };
    if let Some(media_type) = by_content.filter(|kind| is_media(kind)) {
        return media(media_type, seen);
    }
    check_range(path, range)?;
    match text_of(path, opened, range, seen) {
        Ok(text) => Ok(Content::Text(text)),
        Err(Error::Binary { media_type, .. }) => {
            match media_type_by_name(path.as_path()).filter(|_| by_content.is_none()) {
                Some(media_type) => media(media_type, seen),
                None => Ok(Content::Binary { media_type, size }),
            }
        }
        Err(error) => Err(error),
    }
}

fn text_of(
    path: &WorkspacePath,
    opened: &Opened<'_>,
    range: LineRange,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Text, Error> {
    let Opened { file, size, limit } = *opened;
    if size > limit {
        return read_piece(path, file, size, range, limit);
    }
    let bytes = read_whole(path, file, size, limit)?;
    seen(&bytes);
    choose(path, decode(path, bytes)?, range)
}

/// Size and times of a file: they differ after a write.
pub(super) fn changes(path: &WorkspacePath, file: &File) -> Result<impl PartialEq + use<>, Error> {
    let state = fstat(file).map_err(|error| path.failed(error.into()))?;
    Ok((state.st_size, state.st_mtime, state.st_mtime_nsec, state.st_ctime, state.st_ctime_nsec))
}

/// Opens a regular file for reading and returns its size. Other kinds are refused: reading them
/// might block or never end.
pub fn open_file(path: &WorkspacePath) -> Result<(File, u64), Error> {
    let file = path.open()?;
    let state = fstat(&file).map_err(|error| path.failed(error.into()))?;
    let shown = || path.as_path().to_path_buf();
    match Kind::of(&state) {
        Kind::File => Ok((file, u64::try_from(state.st_size).unwrap_or(0))),
        Kind::Directory => Err(Error::IsDirectory { path: shown() }),
        kind => Err(Error::NotRegular { path: shown(), kind }),
    }
}

/// Decodes text; the error names what the bytes are instead.
pub(super) fn decode(path: &WorkspacePath, bytes: Vec<u8>) -> Result<Document, Error> {
    let head = bytes[..bytes.len().min(SNIFFED_BYTES)].to_vec();
    Document::decode(bytes).map_err(|_| binary(path, &head))
}

/// Reads the whole file. The size is only a hint: the file may grow meanwhile, and files of `/proc`
/// report size 0.
fn read_whole(path: &WorkspacePath, file: &File, size: u64, limit: u64) -> Result<Vec<u8>, Error> {
    if size > limit {
        return Err(too_large(path, size, limit));
    }
    let mut bytes = Vec::new();
    // Reserve one byte more than expected, so that the read that finds the end needs no new memory.
    // The reservation may fail: anybody can make a sparse file with a size beyond the memory.
    let expected = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
    bytes
        .try_reserve_exact(expected)
        .map_err(|_| Error::NoMemory { path: path.as_path().to_path_buf(), size })?;
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    match read.map_err(|source| path.failed(source))? as u64 {
        read if read > limit => Err(too_large(path, read, limit)),
        _ => Ok(bytes),
    }
}

/// Selects lines of a file that was read as a whole.
fn choose(path: &WorkspacePath, document: Document, range: LineRange) -> Result<Text, Error> {
    let Document { text, encoding } = document;
    let ends = LineEnds::of(&text);
    let (total, line_ending) = (ends.lines(), ends.usual());
    let (first, last) = match range {
        LineRange::All => (1, total),
        // Line 1 of an empty file may be asked for.
        LineRange::Between { first, .. } if first > total.max(1) => {
            return Err(no_such_line(path, first, total));
        }
        LineRange::Between { first, last } => (first, last.unwrap_or(total)),
        LineRange::Last(count) => (total.saturating_sub(count) + 1, total),
    };
    let content = match range {
        LineRange::All => text,
        _ => select_lines(&text, first, last.min(total)).to_owned(),
    };
    Ok(Text { content, first_line: Some(first), total_lines: Some(total), encoding, line_ending })
}

/// Reads the selected lines of a file that is larger than the limit.
fn read_piece(
    path: &WorkspacePath,
    file: &File,
    size: u64,
    range: LineRange,
    limit: u64,
) -> Result<Text, Error> {
    let head = read_at(path, file, 0, SNIFFED_BYTES)?;
    let is_utf16 = head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF");
    if !is_utf16 && memchr(0, &head).is_some() {
        return Err(binary(path, &head));
    }
    let (bytes, first_line) = match range {
        // In UTF-16 a line end is not one byte, so the byte scans below would cut in the wrong
        // places.
        _ if is_utf16 => return Err(too_large(path, size, limit)),
        LineRange::All => return Err(too_large(path, size, limit)),
        LineRange::Between { first, last } => {
            (scan_forward(path, file, first, last.unwrap_or(usize::MAX), limit)?, Some(first))
        }
        LineRange::Last(count) => (scan_backward(path, file, size, count, limit)?, None),
    };
    let document = decode(path, bytes)?;
    let line_ending = LineEnding::of(&document.text);
    let (content, encoding) = (document.text, document.encoding);
    Ok(Text { content, first_line, total_lines: None, encoding, line_ending })
}

fn scan_forward(
    path: &WorkspacePath,
    file: &File,
    first: usize,
    last: usize,
    limit: u64,
) -> Result<Vec<u8>, Error> {
    let mut reader = BufReader::with_capacity(BLOCK, file);
    let mut bytes = Vec::new();
    let mut line = 1;
    let mut in_line = false;
    while line <= last {
        let block = reader.fill_buf().map_err(|source| path.failed(source))?;
        if block.is_empty() {
            let lines = line - usize::from(!in_line);
            return if line < first || !in_line && line == first {
                Err(no_such_line(path, first, lines))
            } else {
                Ok(bytes)
            };
        }
        let (used, ended) = match memchr(b'\n', block) {
            Some(end) => (end + 1, true),
            None => (block.len(), false),
        };
        if line >= first {
            bytes.extend_from_slice(&block[..used]);
            if bytes.len() as u64 > limit {
                return Err(too_large(path, bytes.len() as u64, limit));
            }
        }
        reader.consume(used);
        in_line = !ended;
        line += usize::from(ended);
    }
    Ok(bytes)
}

fn scan_backward(
    path: &WorkspacePath,
    file: &File,
    size: u64,
    count: usize,
    limit: u64,
) -> Result<Vec<u8>, Error> {
    // Blocks are collected from the end. A line end after the last line separates nothing.
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let (mut at, mut separators, mut length) = (size, 0, 0_u64);
    while at > 0 && separators < count {
        let wanted = usize::try_from(at).unwrap_or(BLOCK).min(BLOCK);
        at -= wanted as u64;
        let mut block = read_at(path, file, at, wanted)?;
        let mut searched = block.len() - usize::from(blocks.is_empty() && block.ends_with(b"\n"));
        while let Some(end) = memrchr(b'\n', &block[..searched]) {
            separators += 1;
            if separators == count {
                block.drain(..=end);
                break;
            }
            searched = end;
        }
        length += block.len() as u64;
        blocks.push(block);
        if length > limit {
            return Err(too_large(path, length, limit));
        }
    }
    blocks.reverse();
    Ok(blocks.concat())
}

fn check_range(path: &WorkspacePath, range: LineRange) -> Result<(), Error> {
    let LineRange::Between { first, last } = range else { return Ok(()) };
    let last = last.unwrap_or(usize::MAX);
    match first == 0 || last < first {
        true => Err(Error::BadRange { path: path.as_path().to_path_buf(), first, last }),
        false => Ok(()),
    }
}

/// Reads up to `length` bytes from an offset; fewer only at the end of the file.
fn read_at(
    path: &WorkspacePath,
    file: &File,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(path.failed(error)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn binary(path: &WorkspacePath, head: &[u8]) -> Error {
    let media_type = media_type_by_content(head).unwrap_or("application/octet-stream");
    Error::Binary { path: path.as_path().to_path_buf(), media_type }
}

fn no_such_line(path: &WorkspacePath, line: usize, lines: usize) -> Error {
    Error::NoSuchLine { path: path.as_path().to_path_buf(), line, lines }
}

fn too_large(path: &WorkspacePath, size: u64, limit: u64) -> Error {
    Error::TooLarge { path: path.as_path().to_path_buf(), size, limit }
}
