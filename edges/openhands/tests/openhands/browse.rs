//! Tests of web pages.

use std::{fs, net::TcpListener, path::Path, process::Command};

use sandbox_test_support::serve_page;
use serde_json::{Value, json};

use crate::server::{Options, Server, content, keys};

const PAGE: &str = "<html><body><h1>A title</h1><p>See <a href='/next'>next</a>.</p></body></html>";
const EXTRAS: [&str; 16] = [
    "active_page_index",
    "axtree_object",
    "dom_object",
    "error",
    "extra_element_properties",
    "filter_visible_only",
    "focused_element_bid",
    "goal_image_urls",
    "last_browser_action",
    "last_browser_action_error",
    "open_pages_urls",
    "screenshot",
    "screenshot_path",
    "set_of_marks",
    "trigger_by_action",
    "url",
];

fn start(arguments: &[&str]) -> Server {
    let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
    Server::start_with(&Options { arguments, ..Options::default() })
}

fn browse(server: &Server, url: &str) -> Value {
    server.action("browse", json!({ "url": url }))
}

#[test]
fn a_page_is_fetched_as_text() {
    let server = start(&["--browser-program", "/no/such/browser"]);
    let url = serve_page(PAGE);
    let observation = browse(&server, &url);
    assert_eq!(observation["observation"], "browse");
    assert_eq!(observation["message"], format!("Visited {url}"));
    assert_eq!(keys(&observation["extras"]), EXTRAS);
    assert_eq!(observation["extras"]["url"], url);
    assert_eq!(observation["extras"]["error"], false);
    assert_eq!(observation["extras"]["trigger_by_action"], "browse");
    let text = content(&observation);
    assert!(text.contains(&url) && text.contains("A title"), "{text}");
    assert!(text.contains("[next][1]") && text.contains("[1]: /next"), "{text}");
}

#[test]
fn a_page_that_cannot_be_loaded_is_reported() {
    let server = start(&["--browser-program", "/no/such/browser"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let observation = browse(&server, &url);
    assert_eq!(observation["extras"]["error"], true, "{observation}");
    assert_ne!(observation["extras"]["last_browser_action_error"], "");
    let missing = browse(&server, "missing.html");
    assert_eq!(missing["extras"]["error_id"], "not_found", "{missing}");
}

#[test]
fn a_file_is_a_page_too() {
    let server = start(&["--browser-program", "/no/such/browser", "--confine"]);
    fs::write(server.path("page.html"), PAGE).unwrap();
    assert!(content(&browse(&server, "page.html")).contains("A title"));
    let outside = browse(&server, "file:///etc/passwd");
    assert_eq!(outside["extras"]["error_id"], "outside_workspace", "{outside}");
}

/// Writes an executable script.
fn write_program(program: &Path, script: &str) {
    // Written by another process: a file that this process has open for writing cannot be executed.
    let write = "printf %s \"$1\" >\"$0\" && chmod +x \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(program).arg(script).status();
    assert!(written.unwrap().success());
}

#[test]
fn a_browser_that_fails_late_has_used_its_time() {
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("browser");
    write_program(&program, "#!/bin/sh\nsleep 2\nexit 1\n");
    let server = start(&["--browser-program", program.to_str().unwrap()]);
    server.output("true");
    // It accepts connections, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let observation = server.action_within("browse", json!({ "url": url }), Some(3.0));
    assert_eq!(observation["extras"]["error"], true, "{observation}");
    // The helper process ended the fetch itself; otherwise it is killed ten seconds later, and the error says so.
    assert!(!observation.to_string().contains("was stopped"), "{observation}");
}

#[test]
fn a_browser_takes_a_picture() {
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("browser");
    let script = "#!/bin/sh\nfor word; do case $word in --screenshot=*) printf PNG > \"${word#*=}\";; \
        esac; url=$word; done\necho \"<p>Shown: $url</p>\"\n";
    write_program(&program, script);
    let server = start(&["--browser-program", program.to_str().unwrap()]);
    let observation = browse(&server, "http://example.invalid/x");
    assert!(content(&observation).contains("Shown: http://example.invalid/x"), "{observation}");
    assert_eq!(observation["extras"]["screenshot"], "data:image/png;base64,UE5H");
    let path = observation["extras"]["screenshot_path"].as_str().unwrap();
    assert!(path.starts_with(&server.path(".browser_screenshots/screenshot_")), "{path}");
    assert_eq!(fs::read(path).unwrap(), b"PNG");
}

#[test]
fn without_a_browser_pages_are_refused() {
    let off = "Browser functionality is not supported or disabled.";
    let server = start(&["--no-enable-browser"]);
    for observation in [
        browse(&server, "http://example.invalid/"),
        server.action("browse_interactive", json!({"browser_actions": "noop()"})),
    ] {
        assert_eq!(observation["observation"], "error");
        assert_eq!(content(&observation), off);
    }
}

/// The renderer never ends on this page.
#[test]
fn a_page_without_end_does_not_hold_up_the_server() {
    let mut server = start(&["--browser-program", "/no/such/browser"]);
    server.output("true");
    fs::write(server.path("page.html"), "<table><td><dd><pre>&#9;").unwrap();
    std::thread::scope(|scope| {
        let url = json!({ "url": "page.html" });
        let browsing = scope.spawn(|| server.action_within("browse", url, Some(3.0)));
        for _ in 0..20 {
            assert_eq!(server.get("/alive").text, r#"{"status":"ok"}"#);
            assert_eq!(server.output("echo free"), "free");
        }
        let observation = browsing.join().unwrap();
        assert_eq!(observation["extras"]["error"], true, "{observation}");
    });
    assert_eq!(server.end(), Some(0));
}
