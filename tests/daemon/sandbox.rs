use base64::prelude::{BASE64_STANDARD, Engine};
use harness::{Placement, SandboxDaemon, in_both_placements, piece, run_directory, wait_until};
use serde_json::{Value, json};

in_both_placements!(
    a_command_reports_its_exit_code_directory_and_output_and_the_shell_stays,
    a_shell_is_created_as_asked_and_others_must_exist,
    numbers_beyond_all_bounds_do_no_harm,
    output_is_streamed_in_order_and_all_of_it_comes_before_the_answer,
    a_command_goes_on_when_its_caller_cancels_or_leaves_or_limits_pass,
    a_command_that_waits_for_input_says_so,
    keys_and_signals_reach_the_program,
    long_output_shows_both_ends_and_all_of_it_can_be_read,
    output_as_text_has_every_line,
    a_client_that_does_not_read_a_flood_costs_little_and_delays_nobody,
    files_are_read_written_edited_found_and_moved,
    files_outside_the_workspace_are_out_of_reach,
    a_hash_has_the_version_that_a_read_gives,
    a_file_is_changed_only_at_the_version_that_was_seen,
    output_is_shown_from_an_offset_and_by_its_last_lines,
    two_clients_work_in_two_shells_at_once,
    many_clients_want_the_same_new_shell_and_get_one,
);

fn a_command_reports_its_exit_code_directory_and_output_and_the_shell_stays(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let first = client.run("mkdir sub && cd sub && x=kept && echo 'hello  world' && (exit 3)");
    assert_eq!(
        json!([first["state"], first["exitCode"], first["output"]["text"], first["ended"]]),
        json!(["finished", 3, "hello  world", "atPrompt"])
    );
    let below = sandbox.workspace().join("sub");
    assert_eq!(first["cwd"], below.to_str().unwrap(), "shells start in the workspace");
    let second = client.run("pwd; echo $x; sleep 1000 & true");
    let text = format!("{}\nkept\n[1] {}", below.display(), second["backgroundPid"]);
    assert_eq!(second["output"]["text"], text);
    for fact in ["user", "machine", "durationMs"] {
        assert!(!second[fact].is_null(), "{fact} is missing in {second}");
    }
    let shells = client.call("shell/list", json!({}));
    assert_eq!(
        json!([shells["shells"][0]["shell"], shells["shells"][0]["state"], shells["shells"][1]]),
        json!(["main", "idle", null])
    );
    client.call("shell/close", json!({}));
    assert_eq!(client.call("shell/list", json!({})), json!({"shells": []}));
}

fn a_shell_is_created_as_asked_and_others_must_exist(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    client.call("file/makeDirectory", json!({"path": "deep/er"}));
    let params =
        json!({"shell": "s1", "cwd": "deep", "environment": {"COLOUR": "blue"}, "columns": 99});
    let shell = client.call("shell/create", params.clone());
    assert_eq!(json!([shell["shell"], shell["columns"], shell["rows"]]), json!(["s1", 99, 48]));
    let ran = client.call(
        "shell/run",
        json!({"shell": "s1", "command": "echo $COLOUR $(basename $PWD) $(stty size)"}),
    );
    assert_eq!(ran["output"]["text"], "blue deep 48 99");
    let drawn = client.call("shell/create", json!({}));
    assert_ne!(drawn["shell"], "s1");
    for (method, params, kind, reason) in [
        ("shell/create", params, "Conflict", "exists"),
        ("shell/create", json!({"cwd": "../.."}), "OutsideWorkspace", "escapes"),
        ("shell/create", json!({"cwd": "missing"}), "NotFound", "noSuchPath"),
        ("shell/create", json!({"shell": "a b"}), "InvalidParams", "invalid"),
        ("shell/create", json!({"columns": 10000, "rows": 10000}), "InvalidParams", "terminalSize"),
        (
            "shell/resize",
            json!({"shell": "s1", "columns": 1001, "rows": 48}),
            "InvalidParams",
            "terminalSize",
        ),
        ("shell/run", json!({"shell": "s2", "command": "true"}), "NotFound", "noSuchShell"),
        ("shell/run", json!({"command": "a\u{0}b"}), "InvalidParams", "invalid"),
        ("shell/run", json!({"command": "true", "limitMs": -1}), "InvalidParams", "invalid"),
        ("shell/keys", json!({"shell": "s1", "keys": ["C-cc"]}), "InvalidParams", "invalid"),
        ("shell/wait", json!({"shell": drawn["shell"]}), "NotFound", "noSuchCommand"),
    ] {
        let error = client.refused(method, params);
        assert_eq!(json!([error["data"]["kind"], error["data"]["reason"]]), json!([kind, reason]));
    }
    let error = client.refused("shell/run", json!({}));
    assert_eq!(error["message"], "Missing command parameter");
    assert!(client.refused("shell/signal", json!({"signal": "NO"}))["message"].is_string());
}

fn numbers_beyond_all_bounds_do_no_harm(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let huge = sandbox.workspace().join("huge");
    std::fs::File::create(huge).unwrap().set_len(1 << 43).unwrap();
    let read = json!({"path": "huge", "raw": true, "limitBytes": u64::MAX});
    let error = client.refused("file/read", read);
    assert_eq!(error["data"]["kind"], "Conflict", "{error}");
    assert_eq!(error["data"]["reason"], "tooLarge", "{error}");
    assert!(error["message"].as_str().unwrap().contains("the limit is 67108864"), "{error}");
    let run = json!({"command": "echo well", "limitMs": 1e22, "quietMs": 1e22});
    assert_eq!(client.call("shell/run", run)["output"]["text"], "well");
}

fn output_is_streamed_in_order_and_all_of_it_comes_before_the_answer(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let id = client.run_until("main", "echo one; read -s x; seq 1 5000; echo $x", "one\r\n");
    let mut other = sandbox.client();
    other.type_secretly("main", "typed");
    let mut printed = b"one\r\n".to_vec();
    let mut next = None;
    let answer = loop {
        let message = client.receive();
        if message["id"] == id {
            break message["result"].clone();
        }
        let offset = message["params"]["value"]["offset"].as_u64().unwrap();
        assert!(next.is_none_or(|next| next == offset), "a gap before {offset}");
        let bytes = piece(&message);
        next = Some(offset + bytes.len() as u64);
        printed.extend(bytes);
    };
    let lines: Vec<_> = (1..=5000).map(|n| n.to_string()).collect();
    let expected = format!("one\r\n{}\r\ntyped\r\n", lines.join("\r\n"));
    assert_eq!(String::from_utf8(printed).unwrap(), expected);
    assert_eq!(json!([answer["exitCode"], answer["output"]["end"]]), json!([0, next]));
}

fn a_command_goes_on_when_its_caller_cancels_or_leaves_or_limits_pass(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let ask = "echo ready; read -s x; echo \"got $x\"";
    let id = client.run_until("main", ask, "ready");
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}});
    client.send(&cancel);
    assert_eq!(client.answer_to(id)["error"]["code"], -32800);

    let busy = client.refused("shell/run", json!({"command": "true"}));
    assert_eq!(busy["data"]["reason"], "busy");
    let running = client.call("shell/wait", json!({"limitMs": 0}));
    assert_eq!(json!([running["why"], running["exitCode"]]), json!(["limit", null]));
    client.type_secretly("main", "a");
    let ended = client.call("shell/wait", json!({"command": running["command"]}));
    assert_eq!(
        json!([ended["state"], ended["output"]["text"]]),
        json!(["finished", "ready\ngot a"])
    );

    let mut leaver = sandbox.client();
    leaver.run_until("main", ask, "ready");
    drop(leaver);
    client.type_secretly("main", "b");
    let ended = client.call("shell/wait", json!({}));
    assert_eq!(ended["output"]["text"], "ready\ngot b");
    let quiet = json!({"command": "echo once; read x", "quietMs": 1});
    assert_eq!(client.call("shell/run", quiet)["why"], "quiet");
}

fn a_command_that_waits_for_input_says_so(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    for (command, input) in [("read x", "line"), ("read -s x", "hidden"), ("read -n 1 x", "keys")] {
        let params = json!({"command": command, "returnOnInput": true, "limitMs": 300});
        let mut state = client.call("shell/run", params);
        wait_until("the command to wait for input", || {
            let asked = state["state"] == "waitingForInput";
            if !asked {
                let again = json!({"returnOnInput": true, "limitMs": 300});
                state = client.call("shell/wait", again);
            }
            asked
        });
        assert_eq!(state["input"], input, "{command}: {state}");
        client.call("shell/input", json!({"text": "y", "enter": input != "keys"}));
        assert_eq!(client.call("shell/wait", json!({}))["exitCode"], 0);
    }
}

fn keys_and_signals_reach_the_program(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let mut other = sandbox.client();
    for (method, params, code) in [
        ("shell/keys", json!({"keys": ["C-c"]}), 130),
        ("shell/signal", json!({"signal": "TERM"}), 143),
    ] {
        // The program itself prints this: a key that comes while bash is still starting it would reach only bash.
        let id = client.run_until("main", "sh -c 'echo ready; exec sleep 1000'", "ready");
        other.call(method, params);
        assert_eq!(client.answer_to(id)["result"]["exitCode"], code, "{method}");
    }
    other.call("shell/resize", json!({"columns": 100, "rows": 30}));
    assert_eq!(client.run("stty size")["output"]["text"], "30 100");
    let attach = other.call("shell/attach", json!({"readOnly": true}));
    assert!(attach["command"].as_str().unwrap().contains("attach-session -r -t"), "{attach}");
}

fn long_output_shows_both_ends_and_all_of_it_can_be_read(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let ran = client.run("seq 1 200000");
    let text = ran["output"]["text"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n199999\n200000"), "{text}");
    assert!(text.len() < 32_000 && text.contains(" bytes omitted: "), "{} bytes", text.len());
    let (start, end) =
        (ran["output"]["start"].as_u64().unwrap(), ran["output"]["end"].as_u64().unwrap());
    let mut read = Vec::new();
    while start + (read.len() as u64) < end {
        let from = start + read.len() as u64;
        let bytes = (end - from).min(300_000);
        let params = json!({"from": from, "bytes": bytes, "raw": true});
        let part = client.call("shell/read", params);
        assert_eq!(json!([part["start"], part["end"]]), json!([from, from + bytes]));
        read.extend(BASE64_STANDARD.decode(part["base64"].as_str().unwrap()).unwrap());
    }
    let expected: String = (1..=200_000).map(|n| format!("{n}\r\n")).collect();
    assert!(read == expected.as_bytes(), "the log is not what was printed");
    let omitted = &ran["output"]["omitted"];
    let params = json!({"from": omitted["end"], "bytes": 4 << 20});
    let tail = client.call("shell/read", params);
    assert!(tail["text"].as_str().unwrap().contains("199999\n200000"), "rendered: {tail}");
}

fn output_as_text_has_every_line(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let expected = (1..=200_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let command = "seq 1 100000; printf 'x\\n\\033[1A'; seq 100001 200000";
    let options = json!({"command": command, "outputBytes": 4 << 20});
    let ran = client.call("shell/run", options);
    assert!(ran["output"]["text"] == expected, "a result is not what was printed");
    assert_eq!(ran["output"]["omitted"], Value::Null);
    let whole = client.call("shell/read", json!({"bytes": 4 << 20}));
    assert!(whole["text"] == expected, "text is not what was printed");
    assert_eq!(whole["end"], ran["output"]["end"]);
    // Wide terminals, as agents' shells have them, do not cost memory for each line.
    let wide = json!({"shell": "wide", "columns": 1000, "rows": 200});
    client.call("shell/create", wide);
    let options = json!({"shell": "wide", "command": command, "outputBytes": 4 << 20});
    let ran = client.call("shell/run", options);
    assert!(ran["output"]["text"] == expected, "a wide shell has not shown what was printed");
    assert!(peak_kib(&sandbox) < 128 << 10, "{} KiB", peak_kib(&sandbox));
    // Text that is read in pieces is cut between lines.
    let ran = client.run("seq 1 200000");
    let end = ran["output"]["end"].as_u64().unwrap();
    let (mut from, mut pieces) = (ran["output"]["start"].as_u64().unwrap(), Vec::new());
    while from < end {
        let params = json!({"from": from, "bytes": (end - from).min(300_000)});
        let piece = client.call("shell/read", params);
        pieces.push(piece["text"].as_str().unwrap().to_owned());
        from = piece["end"].as_u64().unwrap();
    }
    let ends = pieces.iter().map(|piece| (&piece[..9], &piece[piece.len() - 9..]));
    assert!(pieces.join("\n") == expected, "pieces: {:?}", ends.collect::<Vec<_>>());
}

/// The peak memory of the daemon or the sandbox, whichever is larger.
fn peak_kib(sandbox: &SandboxDaemon) -> u64 {
    let peak = |pid: u32| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    };
    peak(sandbox.daemon.program.pid()).max(peak(sandbox.sandbox_pid()))
}

/// When such a client reads again, it gets the output that fitted into its queue, and its answer.
fn a_client_that_does_not_read_a_flood_costs_little_and_delays_nobody(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let flood = "head -c 30000000 /dev/zero | tr '\\0' x | fold -w 1000";
    let ask = |method, params| {
        let mut stopped = sandbox.client();
        let id = stopped.send_request(method, params);
        (stopped, id)
    };
    let run = json!({"shell": "flooded", "command": flood, "create": true, "stream": true});
    let mut stopped = vec![ask("shell/run", run)];
    // Only a daemon that starts sandboxes starts the edge beside them.
    if placement == Placement::Child {
        let args = json!({"command": flood, "blocking": true});
        let act = json!({"action": "run", "args": args, "stream": true});
        stopped.push(ask("action/execute", act));
    }
    let mut other = sandbox.client();
    wait_until("the floods to be over", || {
        assert_eq!(other.run("echo served")["output"]["text"], "served");
        other.call("bridge/status", Value::Null)["inFlight"] == 0
    });
    let status = other.call("bridge/status", Value::Null);
    assert!(status["counters"]["droppedProgress"].as_u64().unwrap() > 0, "{status}");
    assert!(status["queuedBytes"].as_u64().unwrap() < 34 << 20, "{status}");
    assert!(peak_kib(&sandbox) < 128 << 10, "{} KiB", peak_kib(&sandbox));
    for (mut client, id) in stopped {
        let answer = client.answer_to(id);
        assert!(answer["error"].is_null(), "{answer}");
    }
}

fn files_are_read_written_edited_found_and_moved(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let mut call = |method: &str, params: Value| client.call(method, params);
    let written = call("file/write", json!({"path": "src/a.py", "text": "x = 1\ny = 2\n"}));
    assert_eq!(written["created"], true);
    let edited =
        call("file/edit", json!({"path": "src/a.py", "oldText": "x = 1", "newText": "x = 3"}));
    assert!(edited["diff"].as_str().unwrap().contains("-x = 1\n+x = 3\n"), "{edited}");
    call("file/edit", json!({"path": "src/a.py", "insertAfter": 2, "newText": "z = 0"}));
    let read = call("file/read", json!({"path": "src/a.py", "firstLine": 1, "lastLine": 1}));
    assert_eq!(
        json!([read["kind"], read["text"], read["totalLines"]]),
        json!(["text", "x = 3\n", 3])
    );
    assert_eq!(call("file/read", json!({"path": "src/a.py", "tail": 1}))["text"], "z = 0\n");
    call("file/undo", json!({"path": "src/a.py"}));
    call("file/edit", json!({"path": "src/b.py", "newText": "import os\n"}));
    call("file/write", json!({"path": "blob", "base64": "AAEC/w=="}));
    assert_eq!(call("file/read", json!({"path": "blob"}))["kind"], "binary");
    assert_eq!(call("file/read", json!({"path": "blob", "raw": true}))["base64"], "AAEC/w==");
    let listed = call("file/list", json!({"nested": true}));
    let paths: Vec<_> = listed["entries"].as_array().unwrap().iter().map(|e| &e["path"]).collect();
    assert_eq!(paths, ["blob", "src", "src/a.py", "src/b.py"]);
    assert_eq!(
        call("file/glob", json!({"pattern": "**/*.py"}))["paths"],
        json!(["src/a.py", "src/b.py"])
    );
    let found = call("file/grep", json!({"pattern": "^X =", "ignoreCase": true}));
    let line = json!({"path": "src/a.py", "line": 1, "text": "x = 3", "matches": true});
    assert_eq!(found["lines"], json!([line]));
    assert_eq!(call("file/stat", json!({"path": "blob"}))["size"], 4);
    call("file/copy", json!({"from": "src", "to": "copied/src"}));
    call("file/move", json!({"from": "blob", "to": "copied/blob"}));
    call("file/remove", json!({"path": "copied", "recursive": true}));
    call("file/makeDirectory", json!({"path": "empty"}));
    call("file/removeDirectory", json!({"path": "empty"}));
    let left = call("file/list", json!({}));
    assert_eq!(left["entries"], json!([{"path": "src", "kind": "directory"}]));
}

fn files_outside_the_workspace_are_out_of_reach(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let outside = run_directory();
    std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
    let secret = outside.path().join("secret");
    std::os::unix::fs::symlink(&secret, sandbox.workspace().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), sandbox.workspace().join("way")).unwrap();
    let mut client = sandbox.client();
    client.call("file/write", json!({"path": "mine", "text": "x"}));
    for path in ["../x", "/etc/passwd", "link", "way/secret", "way/new", "a/../../x"] {
        for (method, params) in [
            ("file/read", json!({"path": path})),
            ("file/write", json!({"path": path, "text": "broken"})),
            ("file/edit", json!({"path": path, "oldText": "s3cret", "newText": "broken"})),
            ("file/stat", json!({"path": path})),
            ("file/hash", json!({"path": path})),
            ("file/copy", json!({"from": path, "to": "stolen"})),
            ("file/copy", json!({"from": "mine", "to": path, "replace": true})),
            ("file/grep", json!({"path": path, "pattern": "s3cret"})),
        ] {
            let error = client.refused(method, params);
            // If a directory of the path does not exist, the error says so; it says nothing about files outside.
            let told = json!([error["code"], error["data"]["kind"]]);
            let missing = told == json!([-32062, "NotFound"]) && path.starts_with("a/");
            assert!(
                missing || told == json!([-32064, "OutsideWorkspace"]),
                "{method} {path}: {error}"
            );
        }
    }
    for (method, params) in [
        ("file/remove", json!({"path": "way/secret"})),
        ("file/move", json!({"from": "way/secret", "to": "stolen"})),
        ("file/move", json!({"from": "mine", "to": "way/planted"})),
        ("file/makeDirectory", json!({"path": "way/planted"})),
        ("file/list", json!({"path": "way"})),
        ("file/glob", json!({"path": "way", "pattern": "*"})),
    ] {
        let error = client.refused(method, params);
        assert_eq!(error["data"]["kind"], "OutsideWorkspace", "{method}: {error}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "s3cret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

fn a_hash_has_the_version_that_a_read_gives(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    client.call("file/write", json!({"path": "a", "text": "abc"}));
    let read = client.call("file/read", json!({"path": "a"}));
    assert!(read["version"].is_string(), "{read}");
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let expected = json!({"sha256": sha256, "size": 3, "version": read["version"]});
    assert_eq!(client.call("file/hash", json!({"path": "a"})), expected);
    let huge = std::fs::File::create(sandbox.workspace().join("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for (path, kind, reason) in [
        (".", "Conflict", "isDirectory"),
        ("huge", "Conflict", "tooLarge"),
        ("missing", "NotFound", "noSuchPath"),
    ] {
        let error = client.refused("file/hash", json!({"path": path}));
        let facts = json!([error["data"]["kind"], error["data"]["reason"]]);
        assert_eq!(facts, json!([kind, reason]), "{path}: {error}");
    }
}

fn a_file_is_changed_only_at_the_version_that_was_seen(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let (mut client, mut other) = (sandbox.client(), sandbox.client());
    let written = client.call("file/write", json!({"path": "a", "text": "one\ntwo\n"}));
    let read = client.call("file/read", json!({"path": "a", "firstLine": 2}));
    assert_eq!(read["version"], written["version"]);
    let edit = json!({"path": "a", "oldText": "one", "newText": "1", "ifVersion": read["version"]});
    let edited = other.call("file/edit", edit.clone());
    for (method, params) in [
        ("file/edit", edit),
        ("file/write", json!({"path": "a", "text": "mine", "ifVersion": read["version"]})),
    ] {
        let error = client.refused(method, params);
        let facts = [&error["data"]["kind"], &error["data"]["reason"], &error["data"]["version"]];
        assert_eq!(json!(facts), json!(["Conflict", "changed", edited["version"]]), "{error}");
    }
    let read = client.call("file/read", json!({"path": "a"}));
    assert_eq!(json!([read["text"], read["version"]]), json!(["1\ntwo\n", edited["version"]]));
    let undone = client.call("file/undo", json!({"path": "a"}));
    assert_eq!(undone["version"], written["version"]);
    let write = json!({"path": "a", "text": "mine", "ifVersion": undone["version"]});
    let ids: Vec<u64> = (0..4).map(|_| client.send_request("file/write", write.clone())).collect();
    let outcomes: Vec<Value> = ids.iter().map(|_| client.receive()).collect();
    let won = outcomes.iter().filter(|answer| answer["result"].is_object()).count();
    assert_eq!(won, 1, "{outcomes:?}");
}

fn output_is_shown_from_an_offset_and_by_its_last_lines(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    // An incomplete escape sequence or character is held back until it is complete.
    let command = "seq 1 100; printf 'h\\xc3'; read -s x; printf '\\xa4\\n\\033[3'; read -s x; printf '1mred\\n'";
    client.run_until("main", command, "100\r\nh");
    let lines = json!({"limitMs": 0, "outputLines": 2});
    let first = client.call("shell/wait", lines)["output"].clone();
    assert_eq!(json!([first["text"], first["lastLines"]]), json!(["100\nh", 2]));
    let mut from = first["end"].clone();
    for expected in ["ä", "red"] {
        client.type_secretly("main", "");
        let params = json!({"from": from, "outputLines": 10, "quietMs": 300});
        let mut seen = client.call("shell/wait", params.clone())["output"].clone();
        wait_until("the next piece", || {
            let is_there = seen["text"] != "";
            if !is_there {
                seen = client.call("shell/wait", params.clone())["output"].clone();
            }
            is_there
        });
        assert_eq!(json!([seen["text"], seen["start"]]), json!([expected, from]));
        assert_eq!(seen["lastLines"], Value::Null);
        from = seen["end"].clone();
    }
    let end = client.call("shell/wait", json!({"from": from}))["output"].clone();
    assert_eq!(json!([end["text"], end["start"]]), json!(["", from]));
    let read = client.call("shell/read", json!({"lines": 1}));
    assert_eq!(json!([read["text"], read["lastLines"], read["more"]]), json!(["red", 1, false]));
    let again = json!({"shell": "main", "reuse": true, "columns": 99});
    assert_eq!(client.call("shell/create", again)["columns"], 160, "it is used as it is");
}

fn two_clients_work_in_two_shells_at_once(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let (mut a, mut b) = (sandbox.client(), sandbox.client());
    let first = a.run_until("a", "v=a; echo ready; read -s x; echo $v$x", "ready");
    let second = b.run_until("b", "v=b; echo ready; read -s x; echo $v$x", "ready");
    let mut typist = sandbox.client();
    typist.type_secretly("b", "2");
    assert_eq!(b.answer_to(second)["result"]["output"]["text"], "ready\nb2");
    typist.type_secretly("a", "1");
    assert_eq!(a.answer_to(first)["result"]["output"]["text"], "ready\na1");
}

fn many_clients_want_the_same_new_shell_and_get_one(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let ids: Vec<u64> = (0..5)
        .map(|_| client.send_request("shell/run", json!({"command": "true", "limitMs": 60000})))
        .collect();
    let mut outcomes: Vec<Value> = ids.iter().map(|_| client.receive()).collect();
    outcomes.sort_by_key(|answer| answer["error"].is_object());
    assert_eq!(outcomes[0]["result"]["exitCode"], 0);
    for answer in &outcomes[1..] {
        let busy = answer["error"]["data"]["reason"] == "busy";
        assert!(busy || answer["result"]["exitCode"] == 0, "{answer}");
    }
    let shells = client.call("shell/list", json!({}));
    assert_eq!(shells["shells"].as_array().unwrap().len(), 1);
}
