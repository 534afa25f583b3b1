//! Tests of the recorder on pipes and temporary files.

use std::fs;

use super::*;
use crate::{
    marker::{Kind, Nonce},
    output::index::IndexReader,
};

/// A pipe with these bytes, whose other end is closed.
fn fed(bytes: &[u8]) -> io::PipeReader {
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(bytes).unwrap();
    reader
}

fn events(directory: &ShellDir) -> Vec<(u64, IndexEvent)> {
    let events = IndexReader::open(&directory.index()).unwrap().read_new().unwrap();
    events.into_iter().map(|event| (event.offset, event.event)).collect()
}

#[test]
fn genuine_markers_go_to_the_index_and_forged_ones_stay_in_the_log() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    let (start, end) = (Nonce::fresh(), Nonce::fresh());
    let expected =
        Expected { seq: 1, kind: Kind::Command, start: start.digest(), end: end.digest() };
    fs::write(directory.expected(), expected.print()).unwrap();
    let genuine = format!("\x1b]7717;S;1;{}\x07", start.as_str());
    let forged = "\x1b]7717;E;1;0123;0;;me;host;/;\x07";
    let stream = format!("a{genuine}b{forged}{genuine}c\x1b]77");
    record(temporary.path(), 1000, fed(stream.as_bytes())).unwrap();
    let log = fs::read_to_string(directory.log()).unwrap();
    // The second copy of a used marker is only text: a replayed stream reports nothing.
    assert_eq!(log, format!("ab{forged}{genuine}c\x1b]77"));
    let events = events(&directory);
    assert_eq!(events[1], (1, IndexEvent::Marker(Marker::Start { seq: 1 })));
    assert_eq!(events[2], (log.len() as u64, IndexEvent::Closed));
}

#[test]
fn beyond_the_quota_the_number_of_lost_bytes_is_kept() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    record(temporary.path(), 10, fed(b"0123456789abcdef")).unwrap();
    assert_eq!(fs::read(directory.log()).unwrap(), b"0123456789");
    assert_eq!(
        events(&directory)[1..],
        [(10, IndexEvent::Lost { bytes: 6 }), (10, IndexEvent::Closed)]
    );
}

#[test]
fn where_a_recorder_was_killed_the_log_says_so() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    record(temporary.path(), 1000, fed(b"one ")).unwrap();
    record(temporary.path(), 1000, fed(b"two ")).unwrap();
    assert_eq!(fs::read(directory.log()).unwrap(), b"one two ");
    let index = fs::read(directory.index()).unwrap();
    let end = memchr::memrchr(b'C', &index).unwrap();
    fs::write(directory.index(), &index[..end]).unwrap();
    record(temporary.path(), 1000, fed(b"three")).unwrap();
    let log = [b"one two ", MISSING, b"three"].concat();
    assert_eq!(fs::read(directory.log()).unwrap(), log);
    // The index ends in the middle of a line, truncated by a full disk.
    let index = fs::read(directory.index()).unwrap();
    fs::write(directory.index(), &index[..index.len() - 4]).unwrap();
    let known = events(&directory).len();
    record(temporary.path(), 1000, fed(b"four")).unwrap();
    let opened = &events(&directory)[known].1;
    assert!(matches!(opened, IndexEvent::Opened { .. }), "{opened:?}");
}

#[test]
fn a_log_that_was_cut_has_lost_what_was_printed_since_the_latest_marker() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    let (start, end) = (Nonce::fresh(), Nonce::fresh());
    let expected =
        Expected { seq: 1, kind: Kind::Command, start: start.digest(), end: end.digest() };
    fs::write(directory.expected(), expected.print()).unwrap();
    let mut recording = Recording::open(&directory, 1000).unwrap();
    recording.append(b"before ");
    let payload = format!("S;1;{}", start.as_str());
    recording.take(Piece::Candidate(payload.as_bytes()));
    recording.append(b"gone ");
    recording.flush_text();
    File::options().write(true).open(directory.log()).unwrap().set_len(3).unwrap();
    recording.append(b"kept");
    recording.flush_text();
    let payload = format!("E;1;{};0;;u;h;/;", end.as_str());
    recording.take(Piece::Candidate(payload.as_bytes()));
    recording.close().unwrap();
    let log = fs::read(directory.log()).unwrap();
    assert_eq!(log, b"bef\0\0\0\0\0\0\0\0\0kept");
    let events = events(&directory);
    assert_eq!(events[1], (7, IndexEvent::Marker(Marker::Start { seq: 1 })));
    assert_eq!(events[2], (12, IndexEvent::Lost { bytes: 5 }));
    assert!(matches!(events[3], (16, IndexEvent::Marker(Marker::End { .. }))), "{events:?}");
}

#[test]
fn a_recorder_waits_for_its_predecessor() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    let (first, mut writer) = io::pipe().unwrap();
    let path = temporary.path().to_owned();
    let former = std::thread::spawn(move || record(&path, 1000, first).unwrap());
    let is_open = || fs::read(directory.index()).is_ok_and(|index| !index.is_empty());
    while !is_open() {
        std::thread::yield_now();
    }
    let path = temporary.path().to_owned();
    let latter = std::thread::spawn(move || record(&path, 1000, fed(b"second")).unwrap());
    writer.write_all(b"first ").unwrap();
    drop(writer);
    former.join().unwrap();
    latter.join().unwrap();
    assert_eq!(fs::read(directory.log()).unwrap(), b"first second");
    let ends = events(&directory).into_iter().filter(|(_, event)| *event == IndexEvent::Closed);
    assert_eq!(ends.map(|(offset, _)| offset).collect::<Vec<_>>(), [6, 12]);
}

#[test]
fn a_full_disk_does_not_stop_the_reading() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    std::os::unix::fs::symlink("/dev/full", directory.log()).unwrap();
    record(temporary.path(), 1000, fed(&[b'x'; 5000])).unwrap();
    assert_eq!(
        events(&directory)[1..],
        [(0, IndexEvent::Lost { bytes: 5000 }), (0, IndexEvent::Closed)]
    );
}

#[test]
fn an_event_is_written_as_soon_as_the_disk_takes_it() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = ShellDir::new(temporary.path().to_owned());
    let mut recording = Recording::open(&directory, 1000).unwrap();
    let index = std::mem::replace(
        &mut recording.index,
        File::options().write(true).open("/dev/full").unwrap(),
    );
    recording.note(IndexEvent::Lost { bytes: 1 });
    recording.flush_events();
    assert_eq!(events(&directory).len(), 1, "only the opening is there");
    // Nothing more is printed, and the disk has room again.
    recording.index = index;
    let (silent, _writer) = io::pipe().unwrap();
    recording.flush_events_until(&silent).unwrap();
    assert_eq!(events(&directory).len(), 2);
}
