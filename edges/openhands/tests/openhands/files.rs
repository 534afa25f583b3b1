//! Tests of reading, writing and editing.

use std::{fs, os::unix::fs::PermissionsExt as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::server::{Options, Server, content, keys};

/// The beginning of a PNG file, which is enough for type detection.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

fn edit(server: &Server, path: &str, command: &str, more: Value) -> Value {
    let mut args = json!({"path": path, "command": command, "impl_source": "oh_aci"});
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.action("edit", args)
}

fn view(server: &Server, path: &str, range: Value) -> Value {
    server.action("read", json!({"path": path, "impl_source": "oh_aci", "view_range": range}))
}

#[test]
fn every_written_line_gets_an_end() {
    let server = Server::start();
    for (text, file) in [("a\nb", "a\nb\n"), ("a\n", "a\n\n"), ("", "\n")] {
        let path = server.path("deep/down/file");
        let observation = server.action("write", json!({"path": path, "content": text}));
        assert_eq!(observation["observation"], "write");
        assert_eq!(content(&observation), "");
        assert_eq!(observation["extras"], json!({ "path": path }));
        assert_eq!(fs::read_to_string(&path).unwrap(), file, "{text:?}");
    }
    let mode = fs::metadata(server.path("deep/down/file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o664);
}

#[test]
fn lines_are_replaced_and_the_mode_is_kept() {
    let server = Server::start();
    let path = server.path("file");
    for (start, end, file) in [
        (0, -1, "x\n"),
        (1, 2, "1\nx\n3\n4\n"),
        (2, -1, "1\n2\nx\n"),
        (4, 4, "1\n2\n3\n4\nx\n"),
        (9, 9, "1\n2\n3\n4\nx\n"),
    ] {
        fs::write(&path, "1\n2\n3\n4\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        server.action("write", json!({"path": path, "content": "x", "start": start, "end": end}));
        assert_eq!(fs::read_to_string(&path).unwrap(), file, "{start}..{end}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    }
}

#[test]
fn relative_paths_follow_the_shell() {
    let server = Server::start();
    server.output("mkdir sub && cd sub");
    let observation = server.action("write", json!({"path": "f", "content": "text"}));
    assert_eq!(observation["extras"]["path"], server.path("sub/f"));
    let observation = server.action("read", json!({"path": "f"}));
    assert_eq!(content(&observation), "text\n");
    let extras = json!({"path": server.path("sub/f"), "impl_source": "default"});
    assert_eq!(observation["extras"], extras);
}

#[test]
fn slices_are_clamped() {
    let server = Server::start();
    fs::write(server.path("f"), "1\n2\n3\n4").unwrap();
    for (start, end, expected) in
        [(0, -1, "1\n2\n3\n4"), (1, 2, "2\n"), (3, 3, "3\n"), (10, 20, "3\n4"), (-5, 2, "1\n2\n")]
    {
        let args = json!({"path": "f", "start": start, "end": end});
        assert_eq!(content(&server.action("read", args)), expected, "{start}..{end}");
    }
}

#[test]
fn media_come_as_data_and_binaries_not_at_all() {
    let server = Server::start();
    for (name, media_type) in [
        ("a.png", "image/png"),
        ("a.JPG", "image/jpeg"),
        ("a.jpeg", "image/jpeg"),
        ("a.gif", "image/gif"),
        ("a.bmp", "image/bmp"),
        ("a.pdf", "application/pdf"),
        ("a.mp4", "video/mp4"),
        ("a.webm", "video/webm"),
    ] {
        fs::write(server.path(name), PNG).unwrap();
        for path in [name.to_owned(), server.path(name)] {
            let observation = server.action("read", json!({ "path": path }));
            let data = format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(PNG));
            assert_eq!(content(&observation), data);
            assert_eq!(observation["observation"], "read");
        }
    }
    fs::write(server.path("a.bin"), b"\0\x01\x02\xff").unwrap();
    for form in ["default", "oh_aci"] {
        let path = server.path("a.bin");
        let observation = server.action("read", json!({"path": path, "impl_source": form}));
        assert_eq!(observation["observation"], "error");
        assert_eq!(content(&observation), "ERROR_BINARY_FILE");
    }
}

#[test]
fn an_unreadable_or_unwritable_file_is_an_error() {
    let server = Server::start();
    fs::create_dir(server.path("dir")).unwrap();
    fs::write(server.path("latin"), b"caf\xe9 na\xefve, text of another time\n").unwrap();
    for (action, path, words, id) in [
        ("read", "missing", "File not found", "not_found"),
        ("read", "dir", "Path is a directory", "invalid"),
        ("read", "latin", "utf-8", "invalid"),
        ("write", "dir", "Path is a directory", "invalid"),
        ("write", "latin", "utf-8", "invalid"),
        ("write", "latin/below", "latin/below", "invalid"),
    ] {
        let mut args = json!({ "path": path });
        if action == "write" {
            args["content"] = "x".into();
        }
        let observation = server.action(action, args);
        assert_eq!(observation["observation"], "error", "{observation}");
        let text = content(&observation);
        assert!(text.contains(words) && text.contains(path), "{text}");
        assert_eq!(observation["extras"], json!({ "error_id": id }));
        assert_eq!(observation["message"], observation["content"]);
        assert_eq!(keys(&observation), ["content", "extras", "message", "observation"]);
    }
}

#[test]
fn a_view_has_numbers() {
    let server = Server::start();
    let path = server.path("f");
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let begin = format!("Here's the result of running `cat -n` on {path}:\n");
    let whole = view(&server, &path, Value::Null);
    assert_eq!(
        content(&whole),
        format!("{begin}     1\tone\n     2\ttwo\n     3\tthree\n     4\t\n")
    );
    assert_eq!(whole["extras"], json!({"path": path, "impl_source": "oh_aci"}));
    let part = view(&server, &path, json!([2, 3]));
    assert_eq!(content(&part), format!("{begin}     2\ttwo\n     3\tthree\n"));
    assert_eq!(view(&server, &path, json!([2, -1]))["content"], part["content"]);
    let beyond = view(&server, &path, json!([3, 9]));
    let text = content(&beyond);
    assert!(text.starts_with("NOTE: ") && text.contains("only 3 lines"), "{text}");
    assert!(text.ends_with(&format!("\n{begin}     3\tthree\n")), "{text}");
    for range in [json!([0, 1]), json!([4, 5]), json!([2, 1]), json!([1]), json!([1, 2, 3])] {
        let observation = view(&server, &path, range.clone());
        let text = content(&observation);
        assert!(text.starts_with("ERROR:\nInvalid `view_range` parameter: ["), "{range}: {text}");
        assert_eq!(observation["observation"], "read");
    }
    fs::write(&path, "").unwrap();
    assert_eq!(content(&view(&server, &path, Value::Null)), format!("{begin}     1\t\n"));
}

#[test]
fn a_view_of_a_directory_goes_two_levels_deep() {
    let server = Server::start();
    server.output("mkdir -p d/b/c/deep d/.hidden && touch d/a d/b/x d/b/.y d/.z && ln -s b d/link");
    let path = server.path("d");
    let observation = view(&server, &path, Value::Null);
    let begin = format!(
        "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n"
    );
    let entries = ["", "a", "b/", "b/c/", "b/x", "link/", "link/c/", "link/x"];
    let listed = entries.map(|entry| format!("{path}/{entry}")).join("\n");
    let text = content(&observation);
    assert!(text.starts_with(&format!("{begin}{listed}\n\n2 hidden")), "{text}");
    let ranged = view(&server, &path, json!([1, 2]));
    assert!(content(&ranged).starts_with("ERROR:\nInvalid `view_range`"), "{ranged}");
}

#[test]
fn editor_paths_are_absolute() {
    let server = Server::start();
    fs::write(server.path("f"), "x").unwrap();
    for observation in [view(&server, "f", Value::Null), edit(&server, "f", "undo_edit", json!({}))]
    {
        let text = content(&observation);
        assert!(text.starts_with("ERROR:\nInvalid `path` parameter: f."), "{text}");
        assert!(text.contains('/') && text.contains(&format!("{}?", server.path("f"))), "{text}");
    }
    let missing = view(&server, "/no/such", Value::Null);
    let text = content(&missing);
    assert!(
        text.starts_with("ERROR:\nInvalid `path` parameter: /no/such.")
            && text.contains("does not exist")
    );
}

#[test]
fn an_edit_answers_with_a_snippet_and_a_difference() {
    let server = Server::start();
    let path = server.path("f");
    fs::write(&path, (1..=9).fold(String::new(), |text, n| text + &format!("line {n}\n"))).unwrap();
    let args = json!({"old_str": "line 6", "new_str": "six\nand a half"});
    let observation = edit(&server, &path, "str_replace", args);
    let begin = format!(
        "The file {path} has been edited. Here's the result of running `cat -n` on a snippet of {path}:\n\
         \x20    3\tline 3\n"
    );
    let text = content(&observation);
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.contains("\n     6\tsix\n     7\tand a half\n     8\tline 7\n"), "{text}");
    assert!(text.contains("\n    10\tline 9\n    11\t\n"), "{text}");
    let diff = format!("--- {path}\n+++ {path}\n@@ -6 +6,2 @@\n-line 6\n+six\n+and a half");
    assert_eq!(
        observation["extras"],
        json!({
            "path": path, "prev_exist": false, "old_content": "line 6",
            "new_content": "six\nand a half", "impl_source": "oh_aci", "diff": diff,
            "_diff_cache": null
        })
    );
    assert_eq!(keys(&observation), ["content", "extras", "message", "observation"]);
}

#[test]
fn replacing_needs_exactly_one_match() {
    let server = Server::start();
    let path = server.path("f");
    let text = "a b\nx\nx\n  indented\n";
    fs::write(&path, text).unwrap();
    for (old, new, words) in [
        (
            "nowhere",
            "y",
            "No replacement was performed, old_str `nowhere` did not appear verbatim in",
        ),
        ("x", "y", "Multiple occurrences of old_str `x` in lines [2, 3]"),
        ("a b", "a b", "No replacement was performed"),
        ("", "y", "Multiple occurrences of old_str `` in lines [1, 2, 3, 4]"),
    ] {
        let observation =
            edit(&server, &path, "str_replace", json!({"old_str": old, "new_str": new}));
        let printed = content(&observation);
        assert!(printed.starts_with("ERROR:\n") && printed.contains(words), "{printed}");
        assert_eq!(observation["observation"], "edit");
        assert_eq!(observation["extras"]["diff"], "");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    // If there is no match, blanks around both texts are ignored.
    edit(&server, &path, "str_replace", json!({"old_str": "\na b \n", "new_str": " c "}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "c\nx\nx\n  indented\n");
    // Without a new text the old one is removed.
    edit(&server, &path, "str_replace", json!({"old_str": "c\n"}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\nx\n  indented\n");
}

#[test]
fn inserting_adds_whole_lines() {
    let server = Server::start();
    let path = server.path("f");
    fs::write(&path, "1\n2").unwrap();
    let observation =
        edit(&server, &path, "insert", json!({"insert_line": "2", "new_str": "3\n4"}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n4\n");
    let text = content(&observation);
    assert!(text.contains("`cat -n` on a snippet of the edited file:\n     1\t1\n"), "{text}");
    edit(&server, &path, "insert", json!({"insert_line": 0, "new_str": "0"}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "0\n1\n2\n3\n4\n");
    for (line, words) in [
        (json!(9), "It should be within the range of allowed values: [0, 5]"),
        (json!(-1), "It should be within the range of allowed values: [0, 5]"),
        (json!("x"), "Invalid insert_line value"),
        (json!(null), "Parameter `insert_line` is required for command: insert."),
    ] {
        let observation =
            edit(&server, &path, "insert", json!({"insert_line": line, "new_str": "x"}));
        let text = content(&observation);
        assert!(text.starts_with("ERROR:\n") && text.contains(words), "{text}");
    }
}

#[test]
fn creating_never_overwrites() {
    let server = Server::start();
    let path = server.path("f");
    let observation = edit(&server, &path, "create", json!({"file_text": "one\ntwo"}));
    assert_eq!(content(&observation), format!("File created successfully at: {path}"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo");
    let observation = edit(&server, &path, "create", json!({"file_text": "x"}));
    assert!(content(&observation).contains("File already exists"), "{observation}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo");
    let path = server.path("no/dir/f");
    let observation = edit(&server, &path, "create", json!({"file_text": "x"}));
    let text = content(&observation);
    assert!(text.starts_with("ERROR:\nRan into "), "{text}");
    assert!(text.ends_with(&format!("while trying to write to {path}")), "{text}");
    assert!(!server.work().join("no").exists());
}

#[test]
fn the_path_is_checked_before_the_parameters() {
    let server = Server::start();
    fs::write(server.path("f"), "x\n").unwrap();
    fs::write(server.path("f.docx"), "x\n").unwrap();
    fs::create_dir(server.path("d")).unwrap();
    let (required, recognized) = ("is required for command: ", "Unrecognized command");
    for (name, command, words) in [
        ("f", "create", "File already exists"),
        ("d", "create", "File already exists"),
        ("missing", "create", required),
        ("missing", "str_replace", "does not exist"),
        ("missing", "insert", "does not exist"),
        ("missing", "dance", "does not exist"),
        ("d", "str_replace", "is a directory"),
        ("d", "dance", "is a directory"),
        ("f.docx", "str_replace", "is a document"),
        ("new.PDF", "create", "is a document"),
        ("f", "str_replace", required),
        ("f", "insert", required),
        ("f", "dance", recognized),
    ] {
        let observation = edit(&server, &server.path(name), command, json!({}));
        let text = content(&observation);
        assert!(text.starts_with("ERROR:\n") && text.contains(words), "{name} {command}: {text}");
    }
    for command in ["create", "str_replace", "dance"] {
        let observation = edit(&server, "f", command, json!({}));
        assert!(content(&observation).contains("Invalid `path` parameter: f."), "{observation}");
    }
}

#[test]
fn a_text_with_a_zero_can_be_written_over() {
    let server = Server::start();
    fs::write(server.path("f"), "a\0\nb\n").unwrap();
    let observation =
        server.action("write", json!({"path": "f", "content": "c", "start": 1, "end": 2}));
    assert_eq!(observation["observation"], "write", "{observation}");
    assert_eq!(fs::read_to_string(server.path("f")).unwrap(), "a\0\nc\n");
}

#[test]
fn changes_are_undone_one_by_one() {
    let server = Server::start();
    let path = server.path("f");
    let undo = || edit(&server, &path, "undo_edit", json!({}));
    edit(&server, &path, "create", json!({"file_text": "a\n"}));
    edit(&server, &path, "str_replace", json!({"old_str": "a", "new_str": "b"}));
    let observation = undo();
    let begin = format!("Last edit to {path} undone successfully. ");
    assert!(content(&observation).starts_with(&begin), "{observation}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");
    let observation = undo();
    assert!(content(&observation).starts_with(&begin), "undo does not remove a created file");
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");
    assert!(content(&undo()).contains(&format!("No edit history found for {path}.")));
    // A write is not remembered for undo.
    server.action("write", json!({"path": path, "content": "c"}));
    assert!(content(&undo()).contains("No edit history found"));
}

#[test]
fn other_commands_are_unrecognized() {
    let server = Server::start();
    let path = server.path("f");
    fs::write(&path, "x\n").unwrap();
    for command in ["", "append"] {
        let observation = edit(&server, &path, command, json!({}));
        let text = content(&observation);
        assert!(text.starts_with("ERROR:\nUnrecognized command"), "{text}");
        for known in ["view", "create", "str_replace", "insert", "undo_edit"] {
            assert!(text.contains(known), "{text}");
        }
    }
    let observation = edit(&server, &path, "view", json!({}));
    assert!(content(&observation).contains("\n     1\tx\n"), "{observation}");
    let observation = edit(
        &server,
        server.work().to_str().unwrap(),
        "insert",
        json!({"insert_line": 0, "new_str": ""}),
    );
    assert!(content(&observation).contains("directory"), "{observation}");
}

#[test]
fn large_files_are_cut_or_refused() {
    let server = Server::start();
    let path = server.path("f");
    fs::write(&path, "0123456789\n".repeat(5000)).unwrap();
    let observation = view(&server, &path, Value::Null);
    let text = content(&observation);
    assert!(text.contains("<response clipped><NOTE>") && text.ends_with("</NOTE>"), "{text:.100}");
    assert!(text.contains("grep -n") && text.chars().count() < 16_500);
    fs::write(&path, "x".repeat((10 << 20) + 600_000)).unwrap();
    let observation = view(&server, &path, Value::Null);
    let text = content(&observation);
    assert!(text.starts_with(&format!("ERROR:\nFile validation failed for {path}")), "{text}");
    assert!(text.contains("10.6MB") && text.contains("10MB"), "{text}");
}

#[test]
fn directories_are_created_and_removed() {
    let server = Server::start();
    for (action, args, word) in [
        ("mkdir", json!({"path": "a/b/c"}), "a/b/c"),
        ("rmdir", json!({"path": "a/b/c"}), "a/b/c"),
        ("rm", json!({"path": "a", "recursive": true}), "a"),
    ] {
        let observation = server.action(action, args);
        assert_eq!(observation["observation"], "success", "{observation}");
        assert!(content(&observation).ends_with(&server.path(word)), "{observation}");
        assert_eq!(observation["extras"], json!({}));
    }
    assert_eq!(server.output("ls"), "");
    fs::create_dir(server.path("full")).unwrap();
    fs::write(server.path("full/f"), "").unwrap();
    for (action, path, id) in
        [("rmdir", "full", "invalid"), ("rm", "full", "invalid"), ("rm", "none", "not_found")]
    {
        let observation = server.action(action, json!({ "path": path }));
        assert_eq!(observation["extras"]["error_id"], id, "{observation}");
    }
}

#[test]
fn confined_files_stay_inside() {
    let arguments = vec!["--confine".to_owned()];
    let server = Server::start_with(&Options { arguments, ..Options::default() });
    server.output("ln -s /etc link && ln -s ../.. up");
    for path in ["/etc/passwd", "link/passwd", "../../../etc/passwd", "up/x"] {
        let observation = server.action("read", json!({ "path": path }));
        assert_eq!(observation["extras"]["error_id"], "outside_workspace", "{observation}");
        let observation = server.action("write", json!({"path": path, "content": "x"}));
        assert_eq!(observation["observation"], "error", "{observation}");
    }
    server.action("write", json!({"path": server.path("in"), "content": "x"}));
    assert_eq!(content(&server.action("read", json!({"path": "in"}))), "x\n");
}
