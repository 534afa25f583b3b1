use std::os::unix::fs::symlink;

use harness::{Daemon, SandboxDaemon, Socket, run_directory};
use serde_json::{Value, json};

fn run(command: &str) -> Value {
    json!({"action": "run", "args": {"command": command}})
}

/// Kind and content of an observation.
fn kind_and_content(observation: &Value) -> (&str, &str) {
    let text = |name: &str| {
        observation[name].as_str().unwrap_or_else(|| panic!("no {name} in {observation}"))
    };
    (text("observation"), text("content"))
}

/// The names of all shells.
fn shells(client: &mut Socket) -> Vec<String> {
    let listed = client.call("shell/list", json!({}));
    let names = listed["shells"].as_array().unwrap().iter();
    names.map(|shell| shell["shell"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_kind_of_action_is_carried_out() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let params = json!({"action": "run", "args": {"command": "mkdir sub; cd sub; (exit 3)"},
        "actionId": "first", "timeout": 60_000});
    let ran = client.call("action/execute", params);
    let below = sandbox.workspace().join("sub");
    let metadata = &ran["extras"]["metadata"];
    assert_eq!(
        json!([ran["observation"], ran["cause"], ran["success"], metadata["exit_code"]]),
        json!(["run", "first", false, 3])
    );
    assert_eq!(metadata["working_dir"], below.to_str().unwrap());

    // Paths are relative to the shell's directory, or absolute.
    let written = client.act("write", json!({"path": "a.txt", "content": "one\ntwo"}));
    let path = below.join("a.txt");
    assert_eq!(
        json!([written["observation"], written["extras"]["path"], written.get("cause")]),
        json!(["write", path.to_str().unwrap(), null])
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    assert_eq!(
        kind_and_content(&client.act("read", json!({"path": path, "start": 1}))),
        ("read", "two\n")
    );
    let viewed = client.act("read", json!({"path": "a.txt", "impl_source": "oh_aci"}));
    assert!(viewed["content"].as_str().unwrap().contains("     1\tone\n"), "{viewed}");

    let edit = json!({"path": "a.txt", "command": "str_replace", "old_str": "two", "new_str": "2"});
    let edited = client.act("edit", edit);
    assert_eq!(kind_and_content(&edited).0, "edit");
    assert!(edited["extras"]["diff"].as_str().unwrap().contains("-two\n+2"), "{edited}");
    let insert = json!({"path": path, "command": "insert", "insert_line": 0, "new_str": "zero"});
    client.act("edit", insert);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "zero\none\n2\n");
    client.act("edit", json!({"path": "a.txt", "command": "undo_edit"}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n2\n");
    // `edit` actions and `file/edit` share the history of edits.
    client.call("file/undo", json!({"path": "sub/a.txt"}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    let create = json!({"path": "b.txt", "command": "create", "file_text": "exactly"});
    client.act("edit", create);
    assert_eq!(std::fs::read_to_string(below.join("b.txt")).unwrap(), "exactly");

    assert_eq!(kind_and_content(&client.act("mkdir", json!({"path": "x/y"}))).0, "success");
    assert!(below.join("x/y").is_dir());
    assert_eq!(kind_and_content(&client.act("rmdir", json!({"path": "x/y"}))).0, "success");
    assert_eq!(kind_and_content(&client.act("rm", json!({"path": path}))).0, "success");
    client.act("rm", json!({"path": "x", "recursive": true}));
    assert_eq!(std::fs::read_dir(&below).unwrap().count(), 1, "only b.txt is left");

    let fresh = json!({"command": "pwd", "is_static": true, "cwd": "x/.."});
    client.act("mkdir", json!({"path": "x"}));
    assert_eq!(kind_and_content(&client.act("run", fresh)), ("run", below.to_str().unwrap()));
    assert!(shells(&mut client).contains(&"agent".to_owned()), "it is a shell like any other");
    assert_eq!(kind_and_content(&client.act("close", json!({}))).0, "success");
    let after = client.act("run", json!({"command": "pwd"}));
    assert_eq!(kind_and_content(&after), ("run", sandbox.workspace().to_str().unwrap()));
}

#[test]
fn what_an_agent_should_read_is_an_observation_with_a_class() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let outside = run_directory();
    std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
    symlink(outside.path(), sandbox.workspace().join("door")).unwrap();
    symlink(outside.path().join("secret"), sandbox.workspace().join("key")).unwrap();
    std::fs::write(sandbox.workspace().join("file"), "same\nsame\n").unwrap();
    let absolute = outside.path().join("secret");
    let replace = |old: &str| json!({"path": "file", "command": "str_replace", "old_str": old, "new_str": "x"});
    for (action, args, class) in [
        ("read", json!({"path": "missing"}), "not_found"),
        ("read", json!({"path": "/etc/passwd"}), "outside_workspace"),
        ("read", json!({"path": absolute}), "outside_workspace"),
        ("read", json!({"path": "../x"}), "outside_workspace"),
        ("read", json!({"path": "door/secret"}), "outside_workspace"),
        ("read", json!({"path": "key"}), "outside_workspace"),
        ("read", json!({"path": "key", "impl_source": "oh_aci"}), "outside_workspace"),
        ("write", json!({"path": "key", "content": "x"}), "outside_workspace"),
        ("write", json!({"path": "door/new", "content": "x"}), "outside_workspace"),
        (
            "edit",
            json!({"path": "door/new", "command": "create", "file_text": "x"}),
            "outside_workspace",
        ),
        ("mkdir", json!({"path": "door/new"}), "outside_workspace"),
        ("rm", json!({"path": "door/secret"}), "outside_workspace"),
        ("rm", json!({"path": "../x", "recursive": true}), "outside_workspace"),
        ("rmdir", json!({"path": "/tmp"}), "outside_workspace"),
        ("edit", replace("absent"), "invalid"),
        ("edit", replace("same"), "invalid"),
        ("edit", json!({"path": "missing", "command": "view"}), "not_found"),
        ("edit", json!({"path": "file", "command": "polish"}), "invalid"),
        ("read", json!({"path": "file", "bogus": 1}), "invalid"),
        ("run", json!({}), "invalid"),
        ("run", json!({"command": "a\nb"}), "invalid"),
        ("browse", json!({"url": "missing.html"}), "not_found"),
    ] {
        let observation = client.act(action, args.clone());
        assert_eq!(
            json!([observation["observation"], observation["extras"]["error_id"]]),
            json!(["error", class]),
            "{action} {args}: {observation}"
        );
        assert!(!observation["content"].as_str().unwrap().is_empty(), "{observation}");
        assert!(!observation.to_string().contains("s3cret"), "{observation}");
        assert_eq!(observation["extras"].get("trace"), None, "{observation}");
    }
    assert_eq!(std::fs::read_to_string(absolute).unwrap(), "s3cret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    // Relative paths follow the directory of the shell, but never lead out of the workspace.
    client.act("run", json!({"command": format!("cd {}", outside.path().display())}));
    let read = client.act("read", json!({"path": "secret"}));
    assert_eq!(read["extras"]["error_id"], "outside_workspace");
    let named = json!({"action": "run", "args": {"bogus": 1}, "actionId": "mine"});
    assert_eq!(client.call("action/execute", named)["cause"], "mine");
}

#[test]
fn a_call_that_makes_no_sense_fails_and_the_connection_lives_on() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let long = "x".repeat(257);
    for (params, kind, word) in [
        (json!({"action": "dance"}), "InvalidParams", "use one of run, run_ipython, read"),
        (json!({"action": "think"}), "InvalidParams", "carried out by the client"),
        (json!({}), "InvalidParams", "Missing action"),
        (json!({"action": "run", "args": 3}), "InvalidParams", "action/execute"),
        (json!({"action": "close", "shell": "a b"}), "InvalidParams", "not a valid shell name"),
        (json!({"action": "close", "actionId": ""}), "InvalidParams", "Missing actionId"),
        (json!({"action": "close", "actionId": long}), "InvalidParams", "at most 256"),
        (json!({"action": "close", "timeout": -1}), "InvalidParams", "negative"),
    ] {
        let error = client.refused("action/execute", params);
        assert_eq!(error["data"]["kind"], kind, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    let unknown = client.refused("action/execute", json!({"action": "dance"}));
    assert_eq!(unknown["data"]["reason"], "unknownAction");
    let error = client.refused("action/cancel", json!({"actionId": "nobody"}));
    assert_eq!(
        json!([error["data"]["kind"], error["data"]["reason"]]),
        json!(["NotFound", "noSuchAction"])
    );
    assert_eq!(
        kind_and_content(&client.act("run", json!({"command": "echo alive"}))),
        ("run", "alive")
    );
}

#[test]
fn traces_are_included_only_if_asked_for() {
    let sandbox = SandboxDaemon::start_with(&["--action-traces"]);
    let mut client = sandbox.client();
    let extras = client.act("read", json!({"path": "missing"}))["extras"].clone();
    assert_eq!(extras["error_id"], "not_found");
    assert!(extras["trace"].as_str().unwrap().contains("NotFound"), "{extras}");
}

#[test]
fn without_a_sandbox_there_are_no_actions() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    for method in ["action/execute", "action/cancel", "action/other"] {
        let error = client.refused(method, json!({"action": "close"}));
        assert_eq!(error["data"]["kind"], "MethodNotFound");
        assert!(error["message"].as_str().unwrap().contains("--sandbox DIR"), "{error}");
    }
}

#[test]
fn output_is_streamed_with_its_place_in_the_log() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let id = client.act_until(run("echo öne; read -s x; seq 1 3000; echo $x"), "öne\r\n");
    let mut other = sandbox.client();
    other.type_secretly("agent", "typed");
    let (mut printed, mut first, mut next) = (String::new(), None, None);
    let answer = loop {
        let message = client.receive();
        if message["id"] == id {
            break message["result"].clone();
        }
        let value = &message["params"]["value"];
        let start = value["start"].as_u64().unwrap();
        assert!(next.is_none_or(|next| next == start), "a gap before {start}");
        first.get_or_insert(start);
        next = value["end"].as_u64();
        printed += value["text"].as_str().unwrap();
    };
    let lines: Vec<_> = (1..=3000).map(|n| n.to_string()).collect();
    assert_eq!(printed, format!("{}\r\ntyped\r\n", lines.join("\r\n")));
    assert_eq!(answer["extras"]["metadata"]["exit_code"], 0);
    assert!(answer["content"].as_str().unwrap().ends_with("3000\ntyped"), "{answer}");
    let bytes = next.unwrap() - first.unwrap();
    let params = json!({"shell": "agent", "from": first, "bytes": bytes});
    let read = client.call("shell/read", params);
    assert_eq!(read["text"].as_str().unwrap(), format!("{}\ntyped", lines.join("\n")));
}

#[test]
fn a_cancel_interrupts_the_command_and_the_shell_is_free_again() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let mut other = sandbox.client();
    let mut params = run("sh -c 'echo ready; sleep 1000'");
    params["actionId"] = json!("long");
    let id = client.act_until(params.clone(), "ready");
    let twice = other.refused("action/execute", params);
    assert_eq!(
        json!([twice["data"]["kind"], twice["data"]["reason"]]),
        json!(["Conflict", "exists"])
    );
    // One of the actions that wait for the shell is cancelled.
    let mut waiting = run("touch never");
    waiting["actionId"] = json!("waiting");
    let taken_back = other.send_request("action/execute", waiting);
    let third = other.send_request("action/execute", run("echo third"));
    let mut canceller = sandbox.client();
    canceller.call("action/cancel", json!({"actionId": "waiting"}));
    assert_eq!(other.answer_to(taken_back)["error"]["code"], -32800);
    canceller.call("action/cancel", json!({"actionId": "long"}));
    let error = client.answer_to(id)["error"].clone();
    assert_eq!(json!([error["code"], error["data"]["reason"]]), json!([-32800, "cancelled"]));
    assert_eq!(kind_and_content(&other.answer_to(third)["result"]), ("run", "third"));
    assert!(!sandbox.workspace().join("never").exists());

    // `$/cancelRequest` of the caller does the same, and the action id can be used again at once.
    let id = client.act_until(run("sh -c 'echo ready; sleep 1000'"), "ready");
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
    assert_eq!(kind_and_content(&client.act("run", json!({"command": "echo $?"}))), ("run", "130"));
    let static_ = json!({"action": "run", "args": {"command": "sh -c 'echo ready; sleep 1000'", "is_static": true}});
    let id = client.act_until(static_, "ready");
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
}

#[test]
fn a_command_that_ignores_the_interrupt_keeps_running_and_the_agent_learns_it() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let mut params = run("(trap '' INT; echo ready; read -s x; echo \"got $x\")");
    params["actionId"] = json!("deaf");
    let id = client.act_until(params, "ready");
    sandbox.client().call("action/cancel", json!({"actionId": "deaf"}));
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);
    let busy = client.act("run", json!({"command": "echo no"}));
    let suffix = busy["extras"]["metadata"]["suffix"].as_str().unwrap();
    assert!(suffix.contains("NOT executed"), "{busy}");
    let typed = client.act("run", json!({"command": "input", "is_input": true}));
    assert_eq!(typed["extras"]["metadata"]["exit_code"], 0, "{typed}");
    assert!(typed["content"].as_str().unwrap().ends_with("got input"), "{typed}");
}

#[test]
fn a_caller_that_leaves_or_times_out_does_not_stop_its_command() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let ask = "echo ready; read -s x; echo \"got $x\"";
    let mut leaver = sandbox.client();
    leaver.act_until(run(ask), "ready");
    drop(leaver);
    client.type_secretly("agent", "a");
    assert_eq!(
        kind_and_content(&client.act("run", json!({"command": ""}))),
        ("run", "ready\ngot a")
    );

    let mut params = run(ask);
    params["timeout"] = json!(3000);
    let late = client.call("action/execute", params);
    let metadata = &late["extras"]["metadata"];
    assert_eq!(json!([late["content"], metadata["exit_code"]]), json!(["ready", -1]));
    assert!(metadata["suffix"].as_str().unwrap().contains("timed out after 2.5 seconds"), "{late}");
    client.type_secretly("agent", "b");
    assert_eq!(kind_and_content(&client.act("run", json!({"command": ""}))), ("run", "got b"));
}

#[test]
fn commands_of_a_shell_keep_their_order_and_everything_else_runs_beside_them() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let workspace = sandbox.workspace();
    let mut send = |n: usize| {
        let mut params = run(&format!("echo {n} >> order"));
        // It is the same shell, however its runtime is named.
        match n % 3 {
            0 => params["runtimeId"] = json!("sandbox"),
            1 => params["path"] = json!(workspace.join(n.to_string())),
            _ => {}
        }
        client.send_request("action/execute", params)
    };
    let ids: Vec<_> = (1..=20).map(&mut send).collect();
    let answered: Vec<_> = ids.iter().map(|_| client.receive()["id"].as_u64().unwrap()).collect();
    assert_eq!(answered, ids, "they are answered in their order, too");
    let order: String = (1..=20).map(|n| format!("{n}\n")).collect();
    assert_eq!(kind_and_content(&client.act("read", json!({"path": "order"}))).1, order);

    client.act("run", json!({"command": "mkfifo pipe"}));
    let blocked = client.send_request("action/execute", run("cat pipe"));
    let mut other = sandbox.client();
    assert_eq!(kind_and_content(&other.act("read", json!({"path": "order", "end": 1}))).1, "1\n");
    let mut beside = run("echo through > pipe");
    beside["shell"] = json!("second");
    assert_eq!(other.call("action/execute", beside)["success"], true);
    assert_eq!(kind_and_content(&client.answer_to(blocked)["result"]), ("run", "through"));
    assert_eq!(shells(&mut client), ["agent", "second"]);
}

#[test]
fn a_killed_daemons_agents_go_on_where_they_were() {
    let mut sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    client.act("run", json!({"command": "mkdir sub; cd sub; kept=yes"}));
    client.act_until(run("echo ready; read -s x; echo \"$kept $x\""), "ready");
    sandbox.kill_and_start_again();
    let mut client = sandbox.client();
    client.act("write", json!({"path": "new", "content": "x"}));
    assert!(sandbox.workspace().join("sub/new").exists(), "the shell's directory is known");
    let busy = client.act("run", json!({"command": "echo no"}));
    assert_eq!(busy["extras"]["metadata"]["exit_code"], -1, "{busy}");
    client.type_secretly("agent", "found");
    assert_eq!(kind_and_content(&client.act("run", json!({"command": ""}))), ("run", "yes found"));
    assert_eq!(
        kind_and_content(&client.act("run", json!({"command": "echo $kept"}))),
        ("run", "yes")
    );
}

#[test]
fn a_shell_that_is_closed_under_a_command_is_gone() {
    let sandbox = SandboxDaemon::start();
    let mut client = sandbox.client();
    let id = client.act_until(run("sh -c 'echo ready; sleep 1000'"), "ready");
    sandbox.client().call("shell/close", json!({"shell": "agent"}));
    let error = client.answer_to(id)["error"].clone();
    assert_eq!(
        json!([error["data"]["kind"], error["data"]["reason"], error["data"]["mayHaveExecuted"]]),
        json!(["HostGone", "gone", true])
    );
    assert_eq!(
        kind_and_content(&client.act("run", json!({"command": "echo new"}))),
        ("run", "new")
    );
}

#[test]
fn an_action_uses_the_tools_of_the_runtime_that_its_caller_chose() {
    let folder = run_directory();
    let folder = folder.path().canonicalize().unwrap();
    let flag = format!("other={}", folder.display());
    let sandbox = SandboxDaemon::start_with(&["--sandbox", &flag]);
    let mut client = sandbox.client();
    let mut act = |action: Value, member: &str, value: &str| {
        let mut params = action;
        params[member] = json!(value);
        client.call("action/execute", params)
    };
    let workspace = sandbox.workspace();
    // Shells of the same name in two runtimes are different shells.
    for (member, value, home) in [
        ("runtimeId", "sandbox", &workspace),
        ("runtimeId", "other", &folder),
        ("path", folder.join("any").to_str().unwrap(), &folder),
        ("path", workspace.to_str().unwrap(), &workspace),
    ] {
        let ran = act(run("pwd"), member, value);
        assert_eq!(kind_and_content(&ran), ("run", home.to_str().unwrap()), "{member} {value}");
        let write = json!({"action": "write", "args": {"path": "by", "content": value}});
        let written = act(write, member, value);
        assert_eq!(written["extras"]["path"], home.join("by").to_str().unwrap(), "{written}");
        assert_eq!(std::fs::read_to_string(home.join("by")).unwrap(), format!("{value}\n"));
    }
    // A relative path belongs to the chosen runtime even if the agent has no shell yet.
    let mut shellless = json!({"action": "mkdir", "args": {"path": "new"}, "shell": "none"});
    let made = act(shellless.clone(), "runtimeId", "other");
    assert_eq!(
        kind_and_content(&made),
        ("success", &*format!("Done: {}", folder.join("new").display()))
    );
    shellless["args"]["path"] = json!(workspace.join("new"));
    let outside = act(shellless, "runtimeId", "other");
    assert_eq!(outside["extras"]["error_id"], "outside_workspace", "{outside}");

    let error = client.refused("action/execute", run("pwd"));
    assert_eq!(error["data"]["kind"], "AmbiguousRuntime", "{error}");
    let mut nobody = run("pwd");
    nobody["runtimeId"] = json!("nobody");
    assert_eq!(client.refused("action/execute", nobody)["data"]["kind"], "HostUnavailable");
}
