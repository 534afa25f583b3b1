use harness::{SandboxDaemon, kernel_python, process_exists, wait_until};
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
    // Each agent has its own.
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
    // Who closes the agent ends a cell that is running, too.
    let id = client.act_until(cell("print('ready', flush=True); time.sleep(1000)"), "ready");
    other.act("close", json!({}));
    assert_eq!(client.answer_to(id)["error"]["data"]["reason"], "gone");
    wait_until("the end of the closed kernel", || !process_exists(first));
    let after = client.call("action/execute", cell("import os; os.getpid()"));
    let pid = pid(&after["content"]);
    // Also one that is killed takes its kernels along.
    sandbox.kill();
    wait_until("the end of the kernel with the daemon", || !process_exists(pid));
}
