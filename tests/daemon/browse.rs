use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use harness::{SandboxDaemon, process_exists, run_directory, wait_until, write_program};
use serde_json::{Value, json};

const PAGE: &str = "<html><body><h1>A title</h1><p>See <a href='/next'>next</a>.</p></body></html>";

/// A web server that answers when the test says so.
struct Web(TcpListener);

impl Web {
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/page?token=s3cret", listener.local_addr().unwrap());
        (Self(listener), url)
    }

    /// Waits for a request.
    fn request(&self) -> TcpStream {
        let (stream, _) = self.0.accept().unwrap();
        let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("GET /page?token=s3cret "));
        lines.find(String::is_empty).unwrap();
        stream
    }

    fn answer(&self) {
        let mut stream = self.request();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
        stream.write_all(format!("{head}{PAGE}").as_bytes()).unwrap();
    }
}

/// A daemon without Chromium, even if one is installed.
fn start() -> SandboxDaemon {
    SandboxDaemon::start_with(&["--browser-program", "/no/such/browser"])
}

fn browse(url: &str) -> Value {
    json!({"action": "browse", "args": {"url": url}, "actionId": "page"})
}

/// The processes that show pages for a daemon, which are children of its sandbox.
fn helpers(sandbox: &SandboxDaemon) -> Vec<u32> {
    let daemon = sandbox.daemon.program.pid();
    let read = |pid: &u32, name| {
        std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
    };
    let parent = |pid: &u32| -> Option<u32> {
        read(pid, "stat").rsplit(')').next()?.split(' ').nth(2)?.parse().ok()
    };
    let is_grandchild = |pid: &u32| parent(pid).and_then(|pid| parent(&pid)) == Some(daemon);
    let processes = std::fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_helper = |pid: &u32| {
        let arguments = read(pid, "cmdline");
        let arguments: Vec<_> = arguments.split('\0').collect();
        matches!(arguments[..], [program, "work", "page", seconds, ""]
            if program.ends_with("/sandbox") && seconds.parse::<u64>().is_ok())
    };
    pids.filter(is_helper).filter(is_grandchild).collect()
}

#[test]
fn pages_and_files_are_shown_as_text() {
    let sandbox = start();
    let mut client = sandbox.client();
    let (web, url) = Web::start();
    let id = client.send_request("action/execute", browse(&url));
    web.answer();
    let page = client.answer_to(id)["result"].clone();
    assert_eq!(json!([page["observation"], page["cause"]]), json!(["browse", "page"]));
    assert_eq!(json!([page["extras"]["url"], page["extras"]["error"]]), json!([url, false]));
    let text = page["content"].as_str().unwrap();
    assert!(text.contains("A title") && text.contains("[1]: /next"), "{text}");

    std::fs::write(sandbox.workspace().join("page.html"), PAGE).unwrap();
    let file = client.act("browse", json!({"url": "page.html"}));
    assert!(file["content"].as_str().unwrap().contains("[1]: /next"), "{file}");
    let outside = client.act("browse", json!({"url": "file:///etc/passwd"}));
    assert_eq!(outside["extras"]["error_id"], "outside_workspace");

    // A missing page is an observation, too.
    drop(web);
    let gone = client.act("browse", json!({"url": url}));
    assert_eq!(gone["extras"]["error"], true, "{gone}");
    assert_ne!(gone["extras"]["last_browser_action_error"], "");
}

#[test]
fn a_page_that_nobody_wants_any_more_leaves_nothing_behind() {
    let mut sandbox = start();
    let mut client = sandbox.client();
    let (web, url) = Web::start();
    let id = client.send_request("action/execute", browse(&url));
    let _silent = web.request();
    // Other users can see the arguments of a process, so they do not contain the address.
    let helper = helpers(&sandbox)[0];
    sandbox.client().call("action/cancel", json!({"actionId": "page"}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
    wait_until("the end of the program", || !process_exists(helper));

    let mut slow = browse(&url);
    slow["timeout"] = json!(1500);
    let late = client.call("action/execute", slow);
    assert_eq!(late["extras"]["error"], true, "{late}");
    wait_until("the end of the program", || helpers(&sandbox).is_empty());

    let (web, url) = Web::start();
    client.send_request("action/execute", browse(&url));
    let _silent = web.request();
    let helper = helpers(&sandbox)[0];
    sandbox.kill();
    wait_until("the end of the program with the daemon", || !process_exists(helper));
}

#[test]
fn a_browser_takes_pictures_and_ends_with_its_request() {
    let directory = run_directory();
    let program = directory.path().join("browser");
    let script =
        "for word; do case $word in --screenshot=*) printf PNG >\"${word#*=}\";; esac; done
case $word in */slow) echo $$ >\"$0.pid\"; exec sleep 1000;; esac
echo \"<p>Shown: $word</p>\"";
    write_program(&program, script);
    let sandbox = SandboxDaemon::start_with(&["--browser-program", program.to_str().unwrap()]);
    let mut client = sandbox.client();
    let page = client.act("browse", json!({"url": "http://example.invalid/x"}));
    assert!(
        page["content"].as_str().unwrap().contains("Shown: http://example.invalid/x"),
        "{page}"
    );
    assert_eq!(page["extras"]["screenshot"], "data:image/png;base64,UE5H");
    let path = PathBuf::from(page["extras"]["screenshot_path"].as_str().unwrap());
    assert_eq!(path.parent().unwrap(), sandbox.workspace().join(".browser_screenshots"));
    assert_eq!(std::fs::read(path).unwrap(), b"PNG");

    // Pictures are not saved outside of the workspace through a link.
    let outside = run_directory();
    let pictures = sandbox.workspace().join(".browser_screenshots");
    std::fs::remove_dir_all(&pictures).unwrap();
    std::os::unix::fs::symlink(outside.path(), &pictures).unwrap();
    let page = client.act("browse", json!({"url": "http://example.invalid/x"}));
    assert_eq!(page["extras"]["screenshot"], "data:image/png;base64,UE5H");
    assert_eq!(page["extras"]["screenshot_path"], Value::Null);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);

    let id = client.send_request("action/execute", browse("http://example.invalid/slow"));
    let file = directory.path().join("browser.pid");
    let read = || std::fs::read_to_string(&file).unwrap_or_default().trim().parse::<u32>().ok();
    wait_until("the browser", || read().is_some());
    sandbox.client().call("action/cancel", json!({"actionId": "page"}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
    wait_until("the end of the browser", || !process_exists(read().unwrap()));
}
