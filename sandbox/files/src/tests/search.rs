//! Tests of finding files and lines.

use std::fs;

use super::super::*;
use super::Fixture;

pub(super) fn query(pattern: &str) -> Grep {
    Grep {
        pattern: pattern.to_owned(),
        literal: false,
        case: Case::Sensitive,
        files: None,
        context: 0,
        filter: Filter::default(),
        limit: 100,
    }
}

fn project() -> Fixture {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside(".git")).unwrap();
    fixture.put(".gitignore", "target/\n*.log\n");
    fixture.put("src/main.rs", "fn main() {\n    greet();\n}\n");
    fixture.put("src/deep/lib.rs", "pub fn greet() {}\r\n// GREET\r\n");
    fixture.put("target/out.rs", "fn greet() {}\n");
    fixture.put("run.log", "greet\n");
    fixture.put(".config/x.rs", "greet\n");
    fixture.put("data.bin", b"greet\n\0\0greet\n");
    fixture
}

fn found(fixture: &Fixture, base: &str, pattern: &str, filter: Filter) -> Vec<String> {
    let found = glob(&fixture.path(base), pattern, filter, 100).unwrap();
    found.paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

fn hits(fixture: &Fixture, query: &Grep) -> Vec<String> {
    let grepped = grep(&fixture.path("."), query).unwrap();
    let line = |hit: &GrepLine| {
        let mark = if hit.matches { ':' } else { '-' };
        format!("{}{mark}{}{mark}{}", hit.path.display(), hit.line, hit.text)
    };
    grepped.lines.iter().map(line).collect()
}

#[test]
fn globs_match_paths_below_the_directory() {
    let fixture = project();
    let plain = Filter::default();
    assert_eq!(found(&fixture, ".", "**/*.rs", plain), ["src/deep/lib.rs", "src/main.rs"]);
    assert_eq!(found(&fixture, ".", "*.rs", plain), [""; 0]);
    assert_eq!(found(&fixture, "src", "*.rs", plain), ["main.rs"]);
    assert_eq!(found(&fixture, ".", "src/{main,lib}.rs", plain), ["src/main.rs"]);
    let all = Filter { hidden: true, ignored: true };
    assert_eq!(
        found(&fixture, ".", "**/*.{rs,log}", all),
        [".config/x.rs", "run.log", "src/deep/lib.rs", "src/main.rs", "target/out.rs"]
    );
    let few = glob(&fixture.path("."), "**/*.rs", plain, 1).unwrap();
    assert_eq!((few.paths.len(), few.truncated), (1, true));
}

#[test]
fn grep_shows_matching_lines() {
    let fixture = project();
    assert_eq!(
        hits(&fixture, &query("gre+t\\(")),
        ["src/deep/lib.rs:1:pub fn greet() {}", "src/main.rs:2:    greet();"]
    );
    let literal = Grep { literal: true, ..query("greet()") };
    assert_eq!(hits(&fixture, &literal).len(), 2);
    let insensitive = Grep { case: Case::Insensitive, ..query("greet") };
    assert_eq!(hits(&fixture, &insensitive).len(), 3);
    let smart = Grep { case: Case::Smart, ..query("GREET") };
    assert_eq!(hits(&fixture, &smart), ["src/deep/lib.rs:2:// GREET"]);
    let chosen = Grep { files: Some("src/*.rs".into()), ..query("greet") };
    assert_eq!(hits(&fixture, &chosen), ["src/main.rs:2:    greet();"]);
    let context = Grep { context: 1, files: Some("src/main.rs".into()), ..query("greet") };
    assert_eq!(
        hits(&fixture, &context),
        ["src/main.rs-1-fn main() {", "src/main.rs:2:    greet();", "src/main.rs-3-}"]
    );
}

#[test]
fn grep_stops_at_its_limit_and_says_so() {
    let fixture = Fixture::new();
    fixture.put("a", "x\nx\nx\n");
    let path = fixture.path(".");
    let two = grep(&path, &Grep { limit: 2, ..query("x") }).unwrap();
    assert_eq!((two.lines.len(), two.truncated), (2, true));
    let three = grep(&path, &Grep { limit: 3, ..query("x") }).unwrap();
    assert_eq!((three.lines.len(), three.truncated), (3, false));
}

/// A line is held in memory as a whole, and a file may be a single line of any length.
#[test]
fn lines_beyond_all_bounds_are_not_searched() {
    let fixture = Fixture::new();
    fixture.put("a", "x\n");
    fixture.put("b", ["x\n".into(), "y".repeat(17 << 20)].concat());
    fixture.put("c", "x\n");
    let grepped = grep(&fixture.path("."), &query("x")).unwrap();
    let paths: Vec<_> = grepped.lines.iter().map(|line| line.path.to_str().unwrap()).collect();
    assert_eq!((paths, grepped.unreadable), (vec!["a", "b", "c"], 1));
    let refused = grep(&fixture.path("b"), &query("x"));
    assert!(matches!(refused, Err(Error::LongLines { .. })), "{refused:?}");
}

#[test]
fn what_grep_returns_is_bounded() {
    let fixture = Fixture::new();
    let line = format!("{}\n", "x".repeat(LINE_CHARACTERS));
    fixture.put("long", format!("!\n{}", line.repeat(100)).repeat(100));
    let most = Grep { limit: MAX_RESULTS, ..query("x") };
    let around = Grep { context: MAX_CONTEXT, ..query("!") };
    for query in [most, around] {
        let grepped = grep(&fixture.path("."), &query).unwrap();
        assert!(grepped.truncated);
        assert!(grepped.lines.iter().map(|line| line.text.len()).sum::<usize>() <= MAX_GREP_BYTES);
    }
}

#[test]
fn more_than_an_answer_holds_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.path(".");
    for refused in [
        glob(&path, "*", Filter::default(), MAX_RESULTS + 1).map(drop),
        grep(&path, &Grep { limit: MAX_RESULTS + 1, ..query("x") }).map(drop),
        grep(&path, &Grep { context: MAX_CONTEXT + 1, ..query("x") }).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::TooMany { .. }), "{error:?}");
        assert!(error.to_string().contains("ask for fewer"), "{error}");
    }
}

/// As for git: the searched directory, or the whole workspace, may be a part of a repository.
#[test]
fn rules_in_directories_above_count() {
    let fixture = project();
    fixture.put("src/run.log", "");
    assert_eq!(found(&fixture, "src", "**", Filter::default()), ["deep/lib.rs", "main.rs"]);
    fs::write(fixture.base.path().join(".ignore"), "main.rs\n").unwrap();
    assert_eq!(found(&fixture, "src", "**", Filter::default()), ["deep/lib.rs"]);
}

#[test]
fn grep_reads_one_file_and_other_encodings() {
    let fixture = Fixture::new();
    let path = fixture.put("wide", b"\xFF\xFEa\0\n\0b\0\n\0");
    let grepped = grep(&path, &query("^b$")).unwrap();
    assert_eq!((grepped.lines[0].line, grepped.lines[0].text.as_str()), (2, "b"));
    let long = fixture.put("long", format!("x{}\n", "y".repeat(10_000)));
    let line = &grep(&long, &query("x")).unwrap().lines[0];
    assert_eq!(line.text.len(), LINE_CHARACTERS);
}

#[test]
fn bad_patterns_are_explained() {
    let fixture = Fixture::new();
    let path = fixture.path(".");
    let errors = [
        grep(&path, &query("(")).map(drop),
        grep(&path, &Grep { files: Some("[".into()), ..query("x") }).map(drop),
        glob(&path, "{a", Filter::default(), 1).map(drop),
    ];
    for error in errors {
        assert!(matches!(error, Err(Error::BadPattern { .. })), "{error:?}");
    }
    let missing = grep(&fixture.path("none"), &query("x"));
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}
