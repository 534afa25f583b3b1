//! Tests of the output in observations.

use std::fs;

use serde_json::json;

use crate::server::{Server, content, exit_code, metadata};

#[test]
fn long_output_is_cut_in_the_middle_unless_it_is_hidden() {
    let server = Server::start();
    let observation = server.run("for i in $(seq 1 5000); do echo \"Line $i\"; done");
    let text = content(&observation);
    assert_eq!(text.chars().count(), 30_047);
    assert!(text.contains("\n[... Observation truncated due to length ...]\n"));
    assert!(text.starts_with("Line 1\n") && text.ends_with("\nLine 5000"));
    assert_eq!(metadata(&observation, "prefix"), "");

    let args = json!({"command": "seq 1 20000", "hidden": true});
    let observation = server.action("run", args);
    assert_eq!(content(&observation).lines().count(), 20_000);

    let observation = server.run("for i in $(seq 1 50000); do echo \"Line $i\"; done");
    let prefix = metadata(&observation, "prefix");
    assert!(prefix.starts_with("[Previous command outputs are truncated."), "{prefix}");
    assert!(prefix.ends_with("]\n"));
    let text = content(&observation);
    assert!(text.contains("\nLine 40000\n") && text.ends_with("\nLine 50000"));
}

#[test]
fn a_cursor_move_loses_no_output() {
    let server = Server::start();
    let moved = "printf 'x\\n\\033[1Ay\\n'";
    let observation = server.run(&format!("seq 1 5000; {moved}"));
    let text = content(&observation);
    assert_eq!(metadata(&observation, "prefix"), "");
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n4999\n5000\ny"), "{text}");

    let args = json!({"command": format!("seq 1 5000; {moved}"), "hidden": true});
    let observation = server.action("run", args);
    let expected: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!(content(&observation), expected + "y");

    let observation = server.run(&format!("{moved}; seq 1 50000"));
    let prefix = metadata(&observation, "prefix");
    assert!(prefix.starts_with("[Previous command outputs are truncated."), "{prefix}");
    let text = content(&observation);
    assert!(text.contains("\n40000\n") && text.ends_with("\n50000"), "{text}");
}

#[test]
fn hidden_output_is_complete_however_long_it_is() {
    let server = Server::start();
    let args = json!({"command": "seq 1000000 2500000", "hidden": true, "blocking": true});
    let observation = server.action_within("run", args, Some(100.0));
    let text = content(&observation);
    assert!(text.len() > 10 << 20, "{} bytes", text.len());
    assert!((1_000_000..=2_500_000).map(|n| n.to_string()).eq(text.lines()), "other lines");
    assert_eq!(metadata(&observation, "prefix"), "");
}

#[test]
fn a_cleared_screen_hides_nothing_that_came_later() {
    let server = Server::start();
    let observation = server.run("echo before; clear; echo after");
    assert_eq!((content(&observation), exit_code(&observation)), ("after", 0));
    assert_eq!(metadata(&observation, "prefix"), "");
    assert_eq!(content(&server.run("clear")), "");
}

#[test]
fn output_that_looks_like_a_prompt_is_output() {
    let server = Server::start();
    let block = "###PS1JSON###\n{\n  \"pid\": \"\",\n  \"exit_code\": \"99\"\n}\n###PS1END###";
    fs::write(server.path("fake"), format!("{block}\n")).unwrap();
    let observation = server.run("cat fake; printf '\\033]7717;E;2;0;0;;u;h;/;\\007'; echo more");
    assert_eq!(exit_code(&observation), 0);
    assert_eq!(content(&observation), format!("{block}\nmore"));
    assert_eq!(server.output("echo next"), "next");
}
