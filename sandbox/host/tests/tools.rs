//! Tests the tools of a sandbox in this process: cells, pages, and callers that stop waiting.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use bridge_protocol::answer::Answer;
use sandbox_files::Workspace;
use sandbox_host::{Caller, CellSettings, Sandbox, Settings};
use sandbox_pages::Browser;
use sandbox_shells::Config;
use sandbox_test_support::{Home, kernel_python, serve_page, within};
use sandbox_worker::Worker;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;

const PAGE: &str = "<html><body><h1>A title</h1><p>See <a href='/next'>next</a>.</p></body></html>";

struct Fixture {
    home: Home,
    sandbox: Sandbox,
}

impl Fixture {
    async fn new() -> Self {
        let home = Home::new();
        let directory = home.work().canonicalize().unwrap();
        let settings = Settings {
            workspace: Workspace::confined(&directory).unwrap(),
            directory,
            shells: Config::new(home.root(), env!("CARGO_BIN_EXE_sandbox")),
            cells: Some(CellSettings {
                python: Some(kernel_python().into()),
                prelude: Some("__all__ = ['given']\ngiven = 'by the prelude'".into()),
                ..CellSettings::default()
            }),
            browser: Some(Browser {
                chromium: "/no/such/browser".into(),
                worker: Worker::new(env!("CARGO_BIN_EXE_sandbox")),
            }),
        };
        let sandbox = within("opening the sandbox", Sandbox::open(settings)).await.unwrap();
        Self { home, sandbox }
    }

    async fn answer(&self, method: &str, params: Value, caller: &Caller) -> Answer {
        let params = to_raw_value(&params).unwrap();
        within(method, self.sandbox.answer(method, Some(&params), caller)).await
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params, &Caller::without_progress()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{method}: {error:?}"));
        serde_json::from_str(answer.get()).unwrap()
    }

    /// The kind and the reason of the error.
    async fn refused(&self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params, &Caller::without_progress()).await;
        let error = answer.expect_err(method);
        let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
        json!([data["kind"], data["reason"]])
    }

    async fn cell(&self, code: &str) -> String {
        let ran = self.call("cell/run", json!({"code": code})).await;
        ran["text"].as_str().unwrap().trim().to_owned()
    }

    /// Starts a cell and waits until it has printed `up`. Dropping the value drops the call.
    async fn begin_cell(&self, code: &str) -> Begun<'_> {
        let (sender, mut pieces) = mpsc::channel(1);
        let caller = Arc::new(Caller::new(sender));
        let params = to_raw_value(&json!({"code": code, "stream": true})).unwrap();
        let (sandbox, its_caller) = (&self.sandbox, Arc::clone(&caller));
        let mut call: Pin<Box<dyn Future<Output = Answer> + '_>> =
            Box::pin(async move { sandbox.answer("cell/run", Some(&params), &its_caller).await });
        let piece = tokio::select! {
            piece = within("the cell", pieces.recv()) => piece.unwrap(),
            answer = &mut call => panic!("{answer:?}"),
        };
        assert_eq!(serde_json::from_str::<Value>(piece.get()).unwrap()["text"], "up\n");
        Begun { caller, _call: call }
    }

    async fn end(self) {
        within("the end of the sandbox", self.sandbox.shut_down()).await;
        let state = self.home.root();
        assert!(!state.exists(), "{} is left", state.display());
    }
}

struct Begun<'a> {
    caller: Arc<Caller>,
    _call: Pin<Box<dyn Future<Output = Answer> + 'a>>,
}

impl Begun<'_> {
    fn cancel(&self) {
        self.caller.cancel();
    }
}

fn exists(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn errors_do_not_repeat_long_params() {
    let fixture = Fixture::new().await;
    fixture.call("shell/create", json!({})).await;
    let long = "x".repeat(1 << 20);
    for (method, params) in [
        ("shell/signal", json!({"signal": long})),
        ("shell/keys", json!({"keys": [long]})),
        ("shell/run", json!({"command": "true", "shell": long})),
        ("file/read", json!({"path": long})),
        ("file/list", json!({"path": "", "depth": long})),
        (&*format!("file/{long}"), json!({})),
    ] {
        let answer = fixture.answer(method, params, &Caller::without_progress()).await;
        let error = answer.expect_err("it is wrong");
        let size = serde_json::to_string(&error).unwrap().len();
        assert!(size < 3000, "{size} bytes: {:.300}", error.message());
    }
    fixture.end().await;
}

#[tokio::test]
async fn content_that_is_too_large_is_refused_with_advice_for_the_method() {
    let fixture = Fixture::new().await;
    let file = fs::File::create(fixture.home.work().join("large")).unwrap();
    file.set_len(1 << 40).unwrap();
    for (method, params, advice) in [
        ("file/read", json!({"path": "large", "raw": true}), "read a range of lines or the tail"),
        (
            "file/edit",
            json!({"path": "large", "oldText": "a", "newText": "b"}),
            "with a command such as sed",
        ),
        ("file/hash", json!({"path": "large"}), "run sha256sum"),
    ] {
        let answer = fixture.answer(method, params.clone(), &Caller::without_progress()).await;
        let message = answer.expect_err(method).message().to_owned();
        assert!(message.contains(advice), "{method}: {message}");
        assert_eq!(fixture.refused(method, params).await, json!(["Conflict", "tooLarge"]));
    }
    fixture.end().await;
}

#[tokio::test]
async fn every_tool_of_its_families_is_served() {
    let fixture = Fixture::new().await;
    for method in Sandbox::methods() {
        let params = json!({"path": "x", "shell": "none", "pattern": "x"});
        let answer = fixture.answer(method, params, &Caller::without_progress()).await;
        let code = answer.err().map(|error| error.code());
        assert_ne!(code, Some(-32601), "{method} is not found");
    }
    for method in ["shell/fly", "file/fly", "cell/fly", "page/fly", "vscode/chat", ""] {
        let answer = fixture.answer(method, json!({}), &Caller::without_progress()).await;
        assert_eq!(answer.unwrap_err().code(), -32601, "{method}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn a_cell_runs_where_its_shell_is_and_with_its_exports() {
    let fixture = Fixture::new().await;
    fixture.call("shell/run", json!({"command": "mkdir d; cd d; export COLOUR=blue"})).await;
    let code =
        "import os\nx = 6\nprint(os.environ['COLOUR'], os.path.basename(os.getcwd()), given)";
    assert_eq!(fixture.cell(code).await, "blue d by the prelude");
    assert_eq!(fixture.cell("x * 7").await, "42");
    let raised = fixture.call("cell/run", json!({"code": "1 / 0"})).await;
    assert_eq!(raised["ended"], "raised");
    assert!(raised["text"].as_str().unwrap().contains("ZeroDivisionError"), "{raised}");
    assert!(!raised["text"].as_str().unwrap().contains('\x1b'), "{raised}");
    // Another shell has its own kernel, even if the shell does not exist.
    let other = fixture.call("cell/run", json!({"code": "'x' in dir()", "shell": "other"})).await;
    let work = fixture.home.work().canonicalize().unwrap();
    assert_eq!(json!([other["text"], other["cwd"]]), json!(["False", work]));
    let restarted = json!({"code": "'x' in dir()", "restart": true});
    let restarted = fixture.call("cell/run", restarted).await;
    assert_eq!(json!([restarted["text"], restarted["newKernel"]]), json!(["False", "restarted"]));
    fixture.cell("x = 1").await;
    fixture.call("cell/restart", json!({})).await;
    assert_eq!(fixture.cell("'x' in dir()").await, "False");
    fixture.end().await;
}

#[tokio::test]
async fn a_kernel_ends_with_its_shell() {
    let fixture = Fixture::new().await;
    let pid = "import os\nos.getpid()";
    fixture.call("shell/run", json!({"command": "true"})).await;
    let kernel = fixture.cell(pid).await;
    assert!(exists(&kernel));
    fixture.call("shell/close", json!({})).await;
    assert!(!exists(&kernel), "the kernel has outlived its shell");
    let lone = fixture.call("cell/run", json!({"code": pid, "shell": "lone"})).await;
    fixture.call("shell/close", json!({"shell": "lone"})).await;
    assert!(!exists(lone["text"].as_str().unwrap()));
    assert_eq!(
        fixture.refused("shell/close", json!({"shell": "lone"})).await,
        json!(["NotFound", "noSuchShell"])
    );
    fixture.end().await;
}

/// If the caller goes away, the cell goes on; if the caller cancels it, it is interrupted.
#[tokio::test]
async fn a_cancelled_cell_is_interrupted() {
    let fixture = Fixture::new().await;
    let code = "import time\ntry:\n    print('up', flush=True)\n    time.sleep(1000)\n\
                except KeyboardInterrupt:\n    interrupted = True";
    let cancelled = fixture.begin_cell(code).await;
    cancelled.cancel();
    drop(cancelled);
    assert_eq!(fixture.cell("interrupted").await, "True");

    let code =
        "import os\nprint('up', flush=True)\nwhile not os.path.exists('go'): pass\nwent = True";
    drop(fixture.begin_cell(code).await);
    fs::write(fixture.home.work().join("go"), "").unwrap();
    assert_eq!(fixture.cell("went").await, "True");
    fixture.end().await;
}

#[tokio::test]
async fn a_page_is_one_of_the_web_or_a_file_of_the_workspace() {
    let fixture = Fixture::new().await;
    let url = serve_page(PAGE);
    let web = fixture.call("page/browse", json!({"url": url})).await;
    assert!(web["text"].as_str().unwrap().contains("A title"), "{web}");
    fs::write(fixture.home.work().join("a page.html"), PAGE).unwrap();
    let work = fixture.home.work().canonicalize().unwrap();
    let address = format!("file://{}/a%20page.html", work.display());
    for url in ["a page.html", &address] {
        let page = fixture.call("page/browse", json!({"url": url})).await;
        assert_eq!(page["text"], web["text"]);
        assert_eq!(page["url"], format!("file://{}/a page.html", work.display()));
    }
    for (url, kind) in [
        ("file:///etc/passwd", "OutsideWorkspace"),
        ("../x.html", "OutsideWorkspace"),
        ("none.html", "NotFound"),
        ("file:///%ff", "InvalidParams"),
    ] {
        assert_eq!(fixture.refused("page/browse", json!({"url": url})).await[0], kind, "{url}");
    }
    let failed = fixture.call("page/browse", json!({"url": "http://127.0.0.1:1/"})).await;
    assert!(failed["error"].is_string(), "{failed}");
    fixture.end().await;
}

/// Input that crashes a parser ends a helper process at most, and other calls are answered
/// meanwhile.
#[tokio::test]
async fn a_hostile_search_ends_nothing_but_itself() {
    let fixture = Fixture::new().await;
    let work = fixture.home.work();
    fs::write(work.join("a.txt"), "needle\n").unwrap();
    fs::write(work.join(".ignore"), "{".repeat(100_000)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", work.join(".gitignore")).unwrap();
    fs::create_dir(work.join(".git")).unwrap();
    let hostile = ["{".repeat(250), "?".repeat(1_000_000), "[".repeat(8 << 20)];
    for pattern in hostile {
        let refused = fixture.refused("file/glob", json!({"path": ".", "pattern": pattern})).await;
        assert_eq!(refused, json!(["InvalidParams", "badPattern"]));
        let grep = json!({"path": ".", "pattern": pattern.replace('?', "(")});
        assert_eq!(
            fixture.refused("file/grep", grep).await,
            json!(["InvalidParams", "badPattern"])
        );
    }
    let found = fixture.call("file/grep", json!({"path": ".", "pattern": "needle"})).await;
    assert_eq!(found["lines"][0]["path"], "a.txt");
    let found = fixture.call("file/glob", json!({"path": ".", "pattern": "*"})).await;
    assert_eq!(found["paths"], json!(["a.txt"]));
    fixture.end().await;
}

/// The renderer never ends on the first page, and takes quadratic time for the second.
#[tokio::test]
async fn a_hostile_page_ends_nothing_but_itself() {
    let fixture = Fixture::new().await;
    let shown = async |html: &str| {
        fs::write(fixture.home.work().join("page.html"), html).unwrap();
        let params = json!({"url": "page.html", "limitMs": 2000});
        let page = fixture.call("page/browse", params).await;
        page["error"].as_str().unwrap_or_default().to_owned()
    };
    let endless = shown("<table><td><dd><pre>&#9;").await;
    assert!(endless.contains("took longer"), "{endless:?}");
    let deep = shown(&"<div>".repeat(100_000)).await;
    assert!(deep.contains("levels deep"), "{deep:?}");
    assert_eq!(shown("<table><td><dd><pre>\t").await, "");
    assert_eq!(shown(PAGE).await, "");
    fixture.end().await;
}

/// Line 2 of this file is never found: it has 8 TiB and no line end.
#[tokio::test]
async fn reading_through_a_huge_file_holds_up_nothing_and_ends_with_its_caller() {
    let fixture = Fixture::new().await;
    let mut huge = fs::File::create(fixture.home.work().join("huge")).unwrap();
    // Its beginning looks like text.
    huge.write_all(&[b'x'; 1 << 20]).unwrap();
    huge.set_len(1 << 43).unwrap();
    fs::write(fixture.home.work().join("small"), "a\nb\n").unwrap();
    let params = to_raw_value(&json!({"path": "huge", "firstLine": 2})).unwrap();
    let caller = Caller::without_progress();
    let read = || Box::pin(fixture.sandbox.answer("file/read", Some(&params), &caller));
    let mut reads: Vec<_> = (0..10).map(|_| read()).collect();
    let mut others = Box::pin(async {
        for _ in 0..5 {
            fixture.call("file/stat", json!({"path": "huge"})).await;
            let small = json!({"path": "small", "firstLine": 2});
            assert_eq!(fixture.call("file/read", small).await["text"], "b\n");
        }
    });
    std::future::poll_fn(|context| {
        for read in &mut reads {
            assert!(read.as_mut().poll(context).is_pending(), "there is no such line");
        }
        others.as_mut().poll(context)
    })
    .await;
    drop((reads, others));
    // The helpers are free again.
    let found = fixture.call("file/glob", json!({"path": ".", "pattern": "s*"})).await;
    assert_eq!(found["paths"], json!(["small"]));
    fixture.end().await;
}
