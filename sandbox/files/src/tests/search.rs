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

/// Rules are found as by git: the searched directory, or the whole workspace, may be a part of a repository.
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

/// The libraries abort on such globs, and take gigabytes for such expressions.
#[test]
fn patterns_beyond_all_bounds_are_refused_and_quoted_briefly() {
    let fixture = project();
    let path = fixture.path(".");
    let nested = ["{".repeat(250), "a".into(), "}".repeat(250)].concat();
    let wide = "{a}".repeat(GLOB_CHOICES + 1);
    for pattern in [&nested, &wide, &"?".repeat(1_000_000), &"x".repeat(8 << 20)] {
        let globbed = glob(&path, pattern, Filter::default(), 1).map(drop);
        let grepped = grep(&path, &Grep { files: Some(pattern.clone()), ..query("x") }).map(drop);
        for refused in [globbed, grepped] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::BadPattern { .. }), "{error:?}");
            assert!(error.to_string().len() < 1000);
        }
    }
    let deep = ["(".repeat(1000), ")".repeat(1000)].concat();
    for pattern in ["x".repeat(8 << 20), deep, "(?:x{1000}){1000}".into(), "(".repeat(60_000)] {
        let error = grep(&path, &query(&pattern)).unwrap_err();
        assert!(matches!(error, Error::BadPattern { .. }), "{error:?}");
        assert!(error.to_string().len() < 1000);
    }
}

#[test]
fn patterns_at_their_bounds_are_used() {
    let fixture = project();
    let path = fixture.path(".");
    let nested =
        |inner: &str| [&"{".repeat(GLOB_CHOICES), inner, &",b}".repeat(GLOB_CHOICES)].concat();
    for pattern in [
        nested("**/*.rs"),
        nested("[!a]"),
        nested("**/"),
        "?".repeat(GLOB_BYTES),
        "[!a]".repeat(GLOB_BYTES / 4),
        "[à-ÿ]".repeat(GLOB_BYTES / 7),
        "**/".repeat(GLOB_BYTES / 3),
        "*a".repeat(GLOB_BYTES / 2),
    ] {
        glob(&path, &pattern, Filter::default(), 100).unwrap();
    }
    let long = Grep { literal: true, ..query(&"x".repeat(REGEX_BYTES)) };
    assert_eq!(grep(&path, &long).unwrap().lines, []);
}

/// Whatever a repository has in place of a file of rules: it is not opened, or has no rules.
#[test]
fn hostile_ignore_files_have_no_rules() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::fs::symlink;

    let nested = ["{".repeat(100_000), "a".into(), "}".repeat(100_000)].concat();
    type Make<'a> = &'a dyn Fn(&std::path::Path);
    let make: [(&str, Make<'_>); 7] = [
        ("a pipe", &|file| mkfifoat(CWD, file, Mode::RWXU).unwrap()),
        ("a link to a device", &|file| symlink("/dev/zero", file).unwrap()),
        ("a link to itself", &|file| symlink(file.file_name().unwrap(), file).unwrap()),
        ("a directory", &|file| fs::create_dir(file).unwrap()),
        ("nested braces", &|file| fs::write(file, &nested).unwrap()),
        ("many of one letter", &|file| fs::write(file, "?".repeat(200_000)).unwrap()),
        ("a huge file", &|file| fs::File::create(file).unwrap().set_len(1 << 40).unwrap()),
    ];
    for (what, make) in make {
        let fixture = project();
        fs::remove_file(fixture.inside(".gitignore")).unwrap();
        fs::create_dir(fixture.inside(".git/info")).unwrap();
        for name in [".gitignore", ".ignore", ".git/info/exclude", "src/.ignore"] {
            make(&fixture.inside(name));
        }
        let names = found(&fixture, ".", "src/**/*.rs", Filter::default());
        assert_eq!(names, ["src/deep/lib.rs", "src/main.rs"], "{what}");
        assert_eq!(hits(&fixture, &query("fn main")), ["src/main.rs:1:fn main() {"], "{what}");
    }
}

/// A line beyond the limits is no rule, and the others of its file are.
#[test]
fn rules_apply_as_in_git_and_ripgrep() {
    let fixture = project();
    let braces = "{".repeat(1000);
    fixture
        .put(".gitignore", format!("\u{feff}*.log\r\n{braces}\n[\ntarget/\n!.config\n!kept.log\n"));
    fixture.put(".git/info/exclude", "*.tmp\n");
    fixture.put("kept.log", "");
    fixture.put("x.tmp", "");
    fixture.put("src/.gitignore", "/main.rs\n!run.log\n");
    fixture.put("src/run.log", "");
    fixture.put("src/deep/main.rs", "");
    fixture.put("src/deep/.ignore", "!*.log\nlib.rs\n");
    fixture.put("src/deep/any.log", "");
    // Another repository: rules above its top do not count, but those of `.ignore` do.
    fixture.put(".ignore", "*.o\n");
    fs::create_dir_all(fixture.inside("nested/.git")).unwrap();
    fixture.put("nested/a.log", "");
    fixture.put("nested/a.o", "");
    assert_eq!(
        found(&fixture, ".", "**", Filter::default()),
        [
            ".config/x.rs",
            "data.bin",
            "kept.log",
            "nested/a.log",
            "src/deep/any.log",
            "src/deep/main.rs",
            "src/run.log"
        ]
    );
    let ignored = Filter { ignored: true, hidden: false };
    assert!(found(&fixture, ".", "**", ignored).contains(&"target/out.rs".to_owned()));
}
