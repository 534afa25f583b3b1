//! Tests of reading.

use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::*;
use super::Fixture;

const FOUR: &str = "1\n2\n3\n4\n";

fn between(first: usize, last: usize) -> LineRange {
    LineRange::Between { first, last: Some(last) }
}

#[test]
fn ranges_of_lines() {
    let fixture = Fixture::new();
    let path = fixture.put("a", FOUR);
    let from = |first| LineRange::Between { first, last: None };
    // With a limit below the size of the file, the file is scanned. It must give the same lines.
    for limit in [READ_BYTES, 7] {
        for (range, content, first) in [
            (between(1, 1), "1\n", 1),
            (between(2, 3), "2\n3\n", 2),
            (between(4, 9), "4\n", 4),
            (from(3), "3\n4\n", 3),
            (LineRange::Last(1), "4\n", 4),
            (LineRange::Last(3), "2\n3\n4\n", 2),
            (LineRange::Last(0), "", 5),
        ] {
            let text = read_text(&path, range, limit).unwrap();
            assert_eq!(text.content, content, "{range:?} with {limit}");
            assert!(text.first_line.is_none_or(|line| line == first), "{range:?}: {text:?}");
            assert_eq!(text.encoding, Encoding::Utf8);
        }
        let beyond = read_text(&path, from(5), limit);
        assert!(matches!(beyond, Err(Error::NoSuchLine { line: 5, lines: 4, .. })), "{beyond:?}");
        for range in [between(0, 2), between(3, 2)] {
            let bad = read_text(&path, range, limit);
            assert!(matches!(bad, Err(Error::BadRange { .. })), "{bad:?}");
        }
    }
    let all = read_text(&path, LineRange::All, READ_BYTES).unwrap();
    assert_eq!((all.content.as_str(), all.total_lines), (FOUR, Some(4)));
    assert_eq!(all.line_ending, Some(LineEnding::Lf));
    let large = read_text(&path, LineRange::All, 7);
    assert!(matches!(large, Err(Error::TooLarge { size: 8, limit: 7, .. })), "{large:?}");
}

#[test]
fn an_empty_file_is_text_without_lines() {
    let fixture = Fixture::new();
    let path = fixture.put("a", "");
    for range in [LineRange::All, LineRange::Last(5), between(1, 1)] {
        let text = read_text(&path, range, READ_BYTES).unwrap();
        assert_eq!((text.content.as_str(), text.total_lines), ("", Some(0)), "{range:?}");
    }
}

#[test]
fn both_ends_of_a_file_of_many_gigabytes_are_near() {
    let fixture = Fixture::new();
    let path = fixture.put("log", "first\nsecond\n");
    let mut file = File::options().write(true).open(fixture.inside("log")).unwrap();
    // The hole in between takes no space.
    file.seek(SeekFrom::Start(8 << 30)).unwrap();
    let line = "x".repeat(100_000);
    write!(file, "\n{line}\nlast but one\nlast").unwrap();
    // Zeros would make the beginning binary.
    let mut start = File::options().write(true).open(fixture.inside("log")).unwrap();
    start.write_all(&b"first\nsecond\n".repeat(1000)).unwrap();
    let head = read_text(&path, between(2, 2), READ_BYTES).unwrap();
    assert_eq!((head.content.as_str(), head.total_lines), ("second\n", None));
    let tail = read_text(&path, LineRange::Last(2), READ_BYTES).unwrap();
    assert_eq!((tail.content.as_str(), tail.first_line), ("last but one\nlast", None));
    let longer = read_text(&path, LineRange::Last(3), READ_BYTES).unwrap();
    assert_eq!(longer.content, format!("{line}\nlast but one\nlast"));
    let too_much = read_text(&path, LineRange::Last(3), 1000);
    assert!(matches!(too_much, Err(Error::TooLarge { limit: 1000, .. })), "{too_much:?}");
}

#[test]
fn a_long_line_counts_against_the_limit() {
    let fixture = Fixture::new();
    let path = fixture.put("a", format!("short\n{}\n", "x".repeat(10_000)));
    assert_eq!(read_text(&path, between(1, 1), 100).unwrap().content, "short\n");
    assert!(matches!(read_text(&path, between(2, 2), 100), Err(Error::TooLarge { .. })));
}

#[test]
fn anything_is_read_as_what_it_contains() {
    let fixture = Fixture::new();
    let any = |name: &str| read_any(&fixture.path(name), LineRange::All, READ_BYTES).unwrap();
    let png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR";
    fixture.put("picture", png);
    let media = Content::Media { media_type: "image/png", bytes: png.to_vec() };
    assert_eq!(any("picture"), media);
    fixture.put("text.png", "no picture\n");
    assert!(matches!(any("text.png"), Content::Text(text) if text.content == "no picture\n"));
    fixture.put("program", b"\x7FELF\x02\x01\x01\0\0\0");
    assert!(matches!(any("program"), Content::Binary { size: 10, .. }));
    fixture.put("odd.mp3", b"\0\x01\x02");
    assert!(matches!(any("odd.mp3"), Content::Media { media_type: "audio/mpeg", .. }));
    let text = read_text(&fixture.path("picture"), LineRange::All, READ_BYTES);
    assert!(matches!(text, Err(Error::Binary { media_type: "image/png", .. })), "{text:?}");
    let large = read_any(&fixture.path("picture"), LineRange::All, 4);
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
}

#[test]
fn only_regular_files_are_read() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("directory")).unwrap();
    mknodat(CWD, fixture.inside("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let read = |name: &str| read_bytes(&fixture.path(name), READ_BYTES);
    assert!(matches!(read("directory"), Err(Error::IsDirectory { .. })));
    // Opening a pipe without a writer would block for ever.
    assert!(matches!(read("pipe"), Err(Error::NotRegular { kind: Kind::Pipe, .. })));
    assert!(matches!(read("missing"), Err(Error::NotFound { .. })));
    fixture.put("file", "x");
    assert!(matches!(read("file/below"), Err(Error::NotDirectory { .. })));
    let device = Workspace::whole_file_system().path("/dev/zero").unwrap();
    let device = read_bytes(&device, READ_BYTES);
    assert!(matches!(device, Err(Error::NotRegular { kind: Kind::Device, .. })), "{device:?}");
}

#[test]
fn files_that_claim_to_be_empty_are_read() {
    let path = Workspace::whole_file_system().path("/proc/self/status").unwrap();
    let text = read_text(&path, LineRange::Last(1), READ_BYTES).unwrap();
    assert!(text.content.ends_with('\n') && text.total_lines > Some(10), "{text:?}");
    assert!(matches!(read_bytes(&path, 10), Err(Error::TooLarge { limit: 10, .. })));
}

#[test]
fn stat_tells_what_is_there() {
    let fixture = Fixture::new();
    let path = fixture.put("a", "12345");
    fs::set_permissions(fixture.inside("a"), Permissions::from_mode(0o640)).unwrap();
    let seen = stat(&path, Links::Follow).unwrap();
    assert_eq!((seen.kind, seen.size, seen.mode), (Kind::File, 5, 0o640));
    assert_eq!(seen.modified, fs::metadata(fixture.inside("a")).unwrap().modified().unwrap());
    assert_eq!(stat(&fixture.path("."), Links::Follow).unwrap().kind, Kind::Directory);
    std::os::unix::fs::symlink("a", fixture.inside("link")).unwrap();
    assert_eq!(stat(&fixture.path("link"), Links::Follow).unwrap(), seen);
    assert_eq!(stat(&fixture.path("link"), Links::Keep).unwrap().kind, Kind::Symlink);
    for links in [Links::Follow, Links::Keep] {
        assert!(matches!(stat(&fixture.path("none"), links), Err(Error::NotFound { .. })));
    }
}

#[test]
fn a_file_that_claims_more_than_there_is_memory_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.put("huge", "");
    let claimed = 1 << 43;
    File::options().write(true).open(fixture.inside("huge")).unwrap().set_len(claimed).unwrap();
    let refused = read_bytes(&path, u64::MAX);
    assert!(
        matches!(refused, Err(Error::NoMemory { size, .. }) if size == claimed),
        "{:?}",
        refused.map(|bytes| bytes.len())
    );
}
