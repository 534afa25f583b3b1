use harness::{
    SandboxDaemon, kernel_python, process_exists, run_directory, wait_until, write_program,
};
use serde_json::{Value, json};

fn start() -> SandboxDaemon {
    SandboxDaemon::start_with(&["--kernel-python", kernel_python()])
}

fn cell(code: &str) -> Value {
    json!({"action": "run_ipython", "args": {"code": code, "include_extra": false}})
}

#[test]
fn cells_remember_follow_the_shell_and_end_with_the_daemon() {
    let mut sandbox = start();
    let mut client = sandbox.client();
    client.act("run", json!({"command": "mkdir sub; cd sub"}));
    let first = client.call("action/execute", cell("import os; x = 6; os.getpid()"));
    let pid: u32 = first["content"].as_str().unwrap().parse().unwrap();
    assert_eq!(json!([first["observation"], first["success"]]), json!(["run_ipython", true]));
    let second =
        client.act("run_ipython", json!({"code": "print(x * 7, os.path.basename(os.getcwd()))"}));
    let text = second["content"].as_str().unwrap();
    assert!(text.starts_with("42 sub\n[Jupyter current working directory: "), "{text}");
    assert!(
        text.ends_with(&format!("[Jupyter Python interpreter: {}]", kernel_python())),
        "{text}"
    );
    let failed = client.call("action/execute", cell("1/0"));
    assert!(failed["content"].as_str().unwrap().contains("ZeroDivisionError"), "{failed}");
    assert_eq!(failed["success"], false);
    let died = client.call("action/execute", cell("os._exit(1)"));
    assert_eq!(json!([died["observation"], died["success"]]), json!(["run_ipython", false]));
    // Each agent has its own kernel.
    let mut other = cell("'x' in globals()");
    other["shell"] = json!("other");
    assert_eq!(client.call("action/execute", other)["content"], "False");
    client.act("close", json!({}));
    wait_until("the end of the kernel", || !process_exists(pid));
    let anew =
        client.call("action/execute", cell("import os; print('x' in globals()); os.getpid()"));
    let pid = anew["content"].as_str().unwrap().strip_prefix("False\n").unwrap().parse().unwrap();
    sandbox.end();
    wait_until("the end of the kernel with the daemon", || !process_exists(pid));
}

#[test]
fn cells_are_streamed_and_cancelled_while_commands_run() {
    let mut sandbox = start();
    let mut client = sandbox.client();
    let mut params =
        cell("import os, time\nprint(os.getpid(), 'ready', flush=True)\ntime.sleep(1000)");
    params["actionId"] = json!("cell");
    let id = client.act_until(params, "ready");
    let mut other = sandbox.client();
    assert_eq!(other.act("run", json!({"command": "echo beside"}))["content"], "beside");
    other.call("action/cancel", json!({"actionId": "cell"}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
    let pid = |text: &Value| text.as_str().unwrap().parse::<u32>().unwrap();
    let first = pid(&client.call("action/execute", cell("os.getpid()"))["content"]);
    // Closing the agent also ends its running cell.
    let id = client.act_until(cell("print('ready', flush=True); time.sleep(1000)"), "ready");
    other.act("close", json!({}));
    assert_eq!(client.answer_to(id)["error"]["data"]["reason"], "gone");
    wait_until("the end of the closed kernel", || !process_exists(first));
    let after = client.call("action/execute", cell("import os; os.getpid()"));
    let pid = pid(&after["content"]);
    // The kernels of a killed daemon end, too.
    sandbox.kill();
    wait_until("the end of the kernel with the daemon", || !process_exists(pid));
}

#[test]
fn cells_have_what_the_shell_has_exported_and_its_directory() {
    let sandbox = start();
    let mut client = sandbox.client();
    client.act("run", json!({"command": "export COLOUR=blue; own=no; mkdir sub; cd sub"}));
    let code = "import os; print(os.environ['COLOUR'], 'own' in os.environ, os.path.basename(os.getcwd()))";
    assert_eq!(client.call("action/execute", cell(code))["content"], "blue False sub");
    // Later exports reach only a new kernel; the directory is updated with each cell.
    client.act("run", json!({"command": "export COLOUR=red; cd .."}));
    let there = sandbox.workspace().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(client.call("action/execute", cell(code))["content"], format!("blue False {there}"));
    let mut anew = cell(code);
    anew["args"]["restart"] = json!(true);
    let anew = client.call("action/execute", anew);
    let text = anew["content"].as_str().unwrap();
    assert!(text.starts_with(&format!("red False {there}\n[A new kernel was started;")), "{text}");
    // It is the environment of the process: modules are found by it, and unset variables are missing.
    client.act("run", json!({"command": "export PYTHONPATH=$PWD/lib; unset TMPDIR; mkdir lib; echo y=5 >lib/own.py"}));
    let mut anew = cell("import os, own; print(own.y, 'TMPDIR' in os.environ)");
    anew["args"]["restart"] = json!(true);
    let anew = client.call("action/execute", anew);
    let text = anew["content"].as_str().unwrap();
    assert!(text.starts_with("5 False\n"), "{text}");
    // The same holds for a kernel that replaces a dead one.
    client.call("action/execute", cell("os._exit(1)"));
    let next = client.call("action/execute", cell("import own; own.y"));
    assert_eq!(next["content"], "5");
}

/// Also holds for the traceback, which comes last, and in one answer, whose size is limited, too.
#[test]
fn very_long_output_has_both_ends_and_says_how_much_is_missing() {
    let sandbox = start();
    let mut client = sandbox.client();
    let code = "print('begin', flush=True)\nprint('x' * 20_000_000)\nraise Exception('the end')";
    let much = client.call("action/execute", cell(code));
    let (text, lost) =
        (much["content"].as_str().unwrap(), much["extras"]["lost"].as_u64().unwrap());
    assert!(text.starts_with("begin\nxxx") && text.ends_with("Exception: the end"));
    assert!(text.contains(&format!("x\n[{lost} bytes of output were omitted here.]\nx")));
    let whole = text.len() as u64 + lost;
    assert!((20_000_000..20_010_000).contains(&whole), "{whole}");
    assert_eq!(much["success"], false);
    let little = client.call("action/execute", cell("1"));
    assert_eq!(little["extras"], json!({"code": "1", "image_urls": null}));
}

#[test]
fn pictures_are_data_of_their_kind() {
    let sandbox = start();
    let code = "from IPython.display import Image, display
for kind, data in ('png', b'\\x89PNG\\r\\n\\x1a\\n'), ('jpeg', b'\\xff\\xd8\\xff'), ('gif', b'GIF89a'):
    display(Image(data=data, format=kind))
display({'image/webp': 'UklG\\n', 'image/svg+xml': '<svg/>'}, raw=True)";
    let shown = sandbox.client().call("action/execute", cell(code));
    let urls = [
        "data:image/png;base64,iVBORw0KGgo=",
        "data:image/jpeg;base64,/9j/",
        "data:image/gif;base64,R0lGODlh",
        "data:image/webp;base64,UklG",
    ];
    assert_eq!(shown["extras"]["image_urls"], json!(urls), "{shown}");
}

#[test]
fn a_kernel_that_is_stuck_can_be_replaced() {
    let sandbox = start();
    let mut client = sandbox.client();
    let mut stubborn = cell(
        "import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print('ready', flush=True)
time.sleep(1000)",
    );
    stubborn["actionId"] = json!("stubborn");
    let mut restart = cell("'time' in globals()");
    restart["args"]["restart"] = json!(true);
    // After a cancel that the cell ignored.
    let id = client.act_until(stubborn.clone(), "ready");
    let mut other = sandbox.client();
    other.call("action/cancel", json!({"actionId": "stubborn"}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
    let refused = client.call("action/execute", cell("1"));
    assert_eq!(refused["extras"]["error_id"], "refused");
    assert!(refused["content"].as_str().unwrap().contains("`restart` = `true`"), "{refused}");
    let anew = other.call("action/execute", restart.clone());
    let text = anew["content"].as_str().unwrap();
    assert!(text.starts_with("False\n[A new kernel"), "{text}");
    assert_eq!(client.call("action/execute", cell("1"))["content"], "1");
    // And while a caller waits for the cell.
    let id = client.act_until(stubborn, "ready");
    other.call("action/execute", restart);
    let ended = client.answer_to(id)["result"].clone();
    assert_eq!(ended["success"], false);
    assert!(ended["content"].as_str().unwrap().contains("was restarted"), "{ended}");
}

/// The Python of `--kernel-python` is used and no other. If it does not work, that is an error observation; the shell and
/// the daemon keep working.
#[test]
fn a_python_without_ipykernel_is_reported_and_not_replaced() {
    let directory = run_directory();
    let broken = directory.path().join("broken");
    let script = "case $2 in *find_spec*) exit 0;; esac; echo out of order >&2; exit 1";
    write_program(&broken, script);
    for (python, words) in [(broken, "out of order"), ("/no/python".into(), "cannot be started")] {
        let sandbox = SandboxDaemon::start_with(&["--kernel-python", python.to_str().unwrap()]);
        let failed = sandbox.client().call("action/execute", cell("1"));
        assert_eq!(failed["extras"]["error_id"], "unavailable", "{failed}");
        let text = failed["content"].as_str().unwrap();
        for word in [words, python.to_str().unwrap(), "--kernel-python"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
