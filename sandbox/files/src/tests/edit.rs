//! Tests of edits and undo.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::super::document::Document;
use super::super::*;
use super::Fixture;

fn replaced(before: &[u8], old: &str, new: &str) -> Result<(Edited, Vec<u8>), Error> {
    let fixture = Fixture::new();
    let path = fixture.put("a", before);
    let edited = Editor::default().replace_once(&path, old, new)?;
    Ok((edited, fixture.content("a")))
}

fn inserted(before: &[u8], line: usize, text: &str) -> Result<(Edited, Vec<u8>), Error> {
    let fixture = Fixture::new();
    let path = fixture.put("a", before);
    let edited = Editor::default().insert_after(&path, line, text)?;
    Ok((edited, fixture.content("a")))
}

#[test]
fn the_only_match_is_replaced() {
    let (edited, after) = replaced(b"1\n2\n3\n", "2\n3", "x\ny\nz").unwrap();
    assert_eq!(after, b"1\nx\ny\nz\n");
    assert_eq!(edited.before.as_deref(), Some("1\n2\n3\n"));
    assert_eq!(edited.after.as_deref(), Some("1\nx\ny\nz\n"));
    assert_eq!((edited.line, edited.lines_removed, edited.lines_added), (2, 1, 2));
    assert_eq!(replaced(b"abc", "b", "").unwrap().1, b"ac");
}

#[test]
fn no_match_several_matches_and_empty_patterns_change_nothing() {
    assert!(matches!(replaced(b"abc", "x", "y"), Err(Error::NoMatch { .. })));
    assert!(matches!(replaced(b"abc", "", "y"), Err(Error::EmptyPattern { .. })));
    assert!(matches!(replaced(b"abc", "b", "b"), Err(Error::SameText { .. })));
    let several = replaced(b"x\nx x\n\nx", "x", "y");
    let Err(Error::SeveralMatches { count: 4, lines, .. }) = several else { panic!("{several:?}") };
    assert_eq!(lines, [1, 2, 4]);
    // Occurrences do not overlap.
    assert_eq!(replaced(b"aaa", "aa", "b").unwrap().1, b"ba");
    let many = replaced("x\n".repeat(5000).as_bytes(), "x", "y");
    let Err(Error::SeveralMatches { count: 5000, lines, .. }) = many else { panic!("{many:?}") };
    assert_eq!(lines.len(), LINES_REPORTED);
}

#[test]
fn line_ends_of_the_file_are_matched_and_kept() {
    let (edited, after) = replaced(b"1\r\n2\r\n3\r\n", "1\n2", "a\nb\nc").unwrap();
    assert_eq!(after, b"a\r\nb\r\nc\r\n3\r\n");
    assert_eq!(edited.after.as_deref(), Some("a\nb\nc\n3\n"));
    assert_eq!(replaced(b"1\n2\n", "1\r\n2", "a\r\nb").unwrap().1, b"a\nb\n");
    // In a mixed file the lines around the change decide, and the rest stays mixed.
    assert_eq!(replaced(b"1\n2\r\n3\r\n4\n", "2\n3", "x\ny").unwrap().1, b"1\nx\r\ny\r\n4\n");
    assert_eq!(replaced(b"1\n2\r\n3\n4\n", "4", "x\ny").unwrap().1, b"1\n2\r\n3\nx\ny\n");
    // A match may begin or end at a line end.
    assert_eq!(replaced(b"1\r\n2\r\n", "\n2", "").unwrap().1, b"1\r\n");
    assert_eq!(replaced(b"1\r\n2\r\n", "1\n", "").unwrap().1, b"2\r\n");
    assert_eq!(inserted(b"1\r\n2\r\n", 1, "x\ny").unwrap().1, b"1\r\nx\r\ny\r\n2\r\n");
}

#[test]
fn encodings_are_kept() {
    let latin = replaced(b"Gr\xF6\xDFe und Stra\xDFe\n", "Größe", "Höhe").unwrap().1;
    assert_eq!(latin, b"H\xF6he und Stra\xDFe\n");
    assert_eq!(replaced(b"\xEF\xBB\xBFa", "a", "b").unwrap().1, b"\xEF\xBB\xBFb");
    assert_eq!(replaced(b"\xFF\xFEa\0", "a", "ä").unwrap().1, b"\xFF\xFE\xE4\0");
    let arrow = replaced(b"Gr\xF6\xDFe und Stra\xDFe\n", "und", "→");
    assert!(matches!(arrow, Err(Error::Unencodable { character: '→', .. })), "{arrow:?}");
    assert!(matches!(replaced(b"\0\x01", "a", "b"), Err(Error::Binary { .. })));
}

#[test]
fn lines_are_inserted() {
    for (before, line, text, after) in [
        ("1\n2\n", 0, "x", "x\n1\n2\n"),
        ("1\n2\n", 1, "x\n", "1\nx\n2\n"),
        ("1\n2\n", 2, "x\ny", "1\n2\nx\ny\n"),
        ("1\n2", 2, "x", "1\n2\nx\n"),
        ("", 0, "x", "x\n"),
        ("1\n", 1, "", "1\n\n"),
    ] {
        let (edited, bytes) = inserted(before.as_bytes(), line, text).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), after, "{before:?} {line}");
        assert_eq!(edited.line, line + 1);
    }
    let beyond = inserted(b"1\n2\n", 3, "x");
    assert!(matches!(beyond, Err(Error::NoSuchLine { line: 3, lines: 2, .. })), "{beyond:?}");
}

#[test]
fn undo_goes_back_step_by_step() {
    let fixture = Fixture::new();
    let editor = Editor::default();
    let path = fixture.path("new/a");
    editor.create(&path, "one\n", WriteOptions::default()).unwrap();
    let again = editor.create(&path, "x", WriteOptions::default());
    assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
    editor.replace_once(&path, "one", "two").unwrap();
    editor.insert_after(&path, 1, "three").unwrap();
    let undone = editor.undo(&path, Undo::IfUnchanged).unwrap();
    assert_eq!(undone.before.as_deref(), Some("two\nthree\n"));
    assert_eq!(undone.after.as_deref(), Some("two\n"));
    editor.undo(&path, Undo::IfUnchanged).unwrap();
    assert_eq!(fixture.content("new/a"), b"one\n");
    assert_eq!(editor.undo(&path, Undo::IfUnchanged).unwrap().after, None);
    assert!(!fixture.inside("new/a").exists());
    let none = editor.undo(&path, Undo::IfUnchanged);
    assert!(matches!(none, Err(Error::NoHistory { .. })), "{none:?}");
    assert!(none.unwrap_err().to_string().contains("write the former text"));
}

#[test]
fn undo_does_not_overwrite_what_somebody_else_changed() {
    let fixture = Fixture::new();
    let editor = Editor::default();
    let path = fixture.put("a", "one");
    editor.replace_once(&path, "one", "two").unwrap();
    fs::write(fixture.inside("a"), "three").unwrap();
    let changed = editor.undo(&path, Undo::IfUnchanged);
    assert!(matches!(changed, Err(Error::ChangedSinceEdit { .. })), "{changed:?}");
    assert_eq!(fixture.content("a"), b"three");
    editor.undo(&path, Undo::Anyway).unwrap();
    assert_eq!(fixture.content("a"), b"one");
    editor.replace_once(&path, "one", "two").unwrap();
    fs::remove_file(fixture.inside("a")).unwrap();
    assert!(matches!(editor.undo(&path, Undo::IfUnchanged), Err(Error::ChangedSinceEdit { .. })));
    editor.undo(&path, Undo::Anyway).unwrap();
    assert_eq!(fixture.content("a"), b"one");
}

#[test]
fn history_belongs_to_the_file_and_not_to_one_of_its_names() {
    let fixture = Fixture::new();
    let editor = Editor::default();
    fixture.put("real/a", "one");
    symlink("real", fixture.inside("alias")).unwrap();
    symlink("alias/a", fixture.inside("link")).unwrap();
    editor.replace_once(&fixture.path("link"), "one", "two").unwrap();
    editor.undo(&fixture.path("real/../alias/./a"), Undo::IfUnchanged).unwrap();
    assert_eq!(fixture.content("real/a"), b"one");
}

#[test]
fn a_remembered_state_is_restored() {
    let fixture = Fixture::new();
    let editor = Editor::default();
    let path = fixture.put("a", "one");
    editor.remember(&path).unwrap();
    write(&path, b"two", WriteOptions::default()).unwrap();
    editor.undo(&path, Undo::Anyway).unwrap();
    assert_eq!(fixture.content("a"), b"one");
}

#[test]
fn concurrent_edits_are_not_lost() {
    let fixture = Fixture::new();
    let editor = Editor::default();
    let names: Vec<_> = (0..8).map(|number| format!("<{number}>")).collect();
    let path = fixture.put("a", names.concat());
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| editor.replace_once(&path, name, ".").unwrap());
        }
    });
    assert_eq!(fixture.content("a"), b"........");
}

/// Lines without carriage returns, so that the only line ends are those that the test adds.
fn line() -> impl Strategy<Value = String> {
    "[a-cä→ ]{0,3}"
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(line(), 0..8).prop_map(|lines| lines.join("\n"))
}

/// A file in a random encoding, with one or both kinds of line ends.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let ends = proptest::collection::vec(any::<bool>(), 1..4);
    (text(), ends, 0..4_u8).prop_map(|(text, ends, encoding)| {
        let mut ends = ends.into_iter().cycle();
        let text: String = text
            .split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some(line) if ends.next() == Some(true) => format!("{line}\r\n"),
                _ => line.to_owned(),
            })
            .collect();
        let utf16 = |unit: fn(u16) -> [u8; 2]| {
            let marked = format!("\u{FEFF}{text}");
            marked.encode_utf16().flat_map(unit).collect()
        };
        match encoding {
            0 => text.into_bytes(),
            1 => format!("\u{FEFF}{text}").into_bytes(),
            2 => utf16(u16::to_le_bytes),
            _ => utf16(u16::to_be_bytes),
        }
    })
}

/// All line ends of a file in order; true for `\r\n`.
fn endings(bytes: &[u8]) -> Vec<bool> {
    let text = Document::decode(bytes.to_vec()).unwrap().text;
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| line.ends_with("\r\n")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn edits_then_undo_give_the_original_bytes(
        bytes in file(),
        edits in proptest::collection::vec((line(), text(), 0..10_usize, any::<bool>()), 1..6),
    ) {
        let fixture = Fixture::new();
        let path = fixture.put("a", &bytes);
        let editor = Editor::default();
        let mut states = vec![bytes];
        for (old, new, at, insert) in edits {
            let edited = match insert {
                true => editor.insert_after(&path, at, &new),
                false => editor.replace_once(&path, &old, &new),
            };
            match edited {
                Ok(_) => states.push(fixture.content("a")),
                // A refused edit changes nothing.
                Err(_) => prop_assert_eq!(&fixture.content("a"), states.last().unwrap()),
            }
        }
        while states.len() > 1 {
            states.pop();
            editor.undo(&path, Undo::IfUnchanged).unwrap();
            prop_assert_eq!(&fixture.content("a"), states.last().unwrap());
        }
        prop_assert_eq!(fixture.names("."), ["a"]);
    }

    #[test]
    fn an_edit_uses_only_line_ends_that_the_file_has(
        bytes in file(), old in line(), new in text(), at in 0..10_usize, insert in any::<bool>(),
    ) {
        let before = endings(&bytes);
        let result = match insert {
            true => inserted(&bytes, at, &new),
            false => replaced(&bytes, &old, &new),
        };
        if let Ok((edited, bytes)) = result {
            let after = endings(&bytes);
            for kind in [true, false] {
                // A file without line ends gets plain ones.
                let had = before.contains(&kind) || before.is_empty() && !kind;
                prop_assert!(had || !after.contains(&kind), "{before:?} became {after:?}");
            }
            let start = edited.line - 1;
            prop_assert_eq!(&before[..start.min(before.len())], &after[..start.min(before.len())]);
        }
    }

    #[test]
    fn a_replacement_leaves_everything_around_it(
        head in text(), tail in text(), new in text(), crlf in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let file = |middle: &str| format!("{head}\nOLD{middle}\n{tail}").replace('\n', end);
        let (_, after) = replaced(file("").as_bytes(), "OLD", &format!("OLD{new}!")).unwrap();
        prop_assert_eq!(String::from_utf8(after).unwrap(), file(&format!("{new}!")));
    }
}
