//! Tests of cells, in a Python environment that `scripts/setup-kernel` makes.

use std::{fs, io::Write as _, net::TcpStream};

use serde_json::{Value, json};

use crate::server::{Options, Server, content, until_exists};
use sandbox_test_support::kernel_python;

fn start() -> Server {
    let arguments = ["--plugins", "jupyter", "agent_skills", "--kernel-python", kernel_python()];
    let arguments = arguments.map(str::to_owned).to_vec();
    Server::start_with(&Options { arguments, ..Options::default() })
}

fn cell(server: &Server, code: &str) -> Value {
    server.action("run_ipython", json!({"code": code, "include_extra": false}))
}

#[test]
fn cells_print_and_remember() {
    let server = start();
    let observation = server.action("run_ipython", json!({"code": "x = 6\nprint('six')\nx * 7"}));
    let extra = format!(
        "[Jupyter current working directory: {}]\n[Jupyter Python interpreter: {}]",
        server.work().display(),
        kernel_python()
    );
    assert_eq!(content(&observation), format!("six\n42\n{extra}"));
    assert_eq!(observation["observation"], "run_ipython");
    assert_eq!(observation["success"], true);
    let extras = json!({"code": "x = 6\nprint('six')\nx * 7", "image_urls": null});
    assert_eq!(observation["extras"], extras);
    let nothing = cell(&server, "x += 1");
    assert_eq!(content(&nothing), "[Code executed successfully with no output]");
    assert_eq!(content(&cell(&server, "x")), "7");
    let failed = cell(&server, "1 / 0");
    assert!(content(&failed).contains("ZeroDivisionError") && !content(&failed).contains('\x1b'));
    assert_eq!(failed["success"], true, "as OpenHands reports it");
    assert_eq!(content(&cell(&server, "print('\\x1b[31mred\\x1b[0m')")), "red");
    let much = cell(&server, "print('x' * 20_000_000); 1 / 0");
    assert!(content(&much).contains("bytes of output were omitted here.]\nx"));
    assert!(content(&much).ends_with("ZeroDivisionError: division by zero"));
    assert!(much["extras"]["lost"].is_null(), "clients do not know this member");
}

#[test]
fn the_kernel_follows_the_shell_and_shows_pictures() {
    let server = start();
    server.output("mkdir sub && cd sub");
    let code = "import os; os.getcwd()";
    assert_eq!(content(&cell(&server, code)), format!("'{}'", server.path("sub")));
    cell(&server, "os.chdir('/')");
    assert_eq!(content(&cell(&server, code)), "'/'", "a cell's own chdir stays in effect");
    server.output("cd ..");
    assert_eq!(content(&cell(&server, code)), format!("'{}'", server.work().display()));

    // Variables that the shell exports before the first cell are set.
    let server = start();
    server.run("export X='a \"b\"\nü' Y=2; Z=3; (exit 4)");
    let code = "import os; [os.environ.get(name) for name in ('X', 'Y', 'Z')]";
    assert_eq!(content(&cell(&server, code)), "['a \"b\"\\nü', '2', None]");
    assert_eq!(server.output("echo $?"), "4", "the shell is not affected");

    let picture = "from IPython.display import Image, display\n\
        display(Image(data=b'\\xff\\xd8\\xff', format='jpeg'))\n\
        display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 40, format='png'))";
    let observation = cell(&server, picture);
    let url = observation["extras"]["image_urls"][0].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,iVBORw0K"), "{url}");
    assert!(!url.contains('\n'));
    assert_eq!(observation["extras"]["image_urls"].as_array().unwrap().len(), 1, "PNG only");
}

#[test]
fn a_cell_that_takes_too_long_is_interrupted() {
    let server = start();
    cell(&server, "import time");
    let args = json!({"code": "print('on'); time.sleep(1000)", "include_extra": false});
    let observation = server.action_within("run_ipython", args, Some(2.0));
    let text = content(&observation);
    assert!(text.ends_with("[Execution timed out (2.0 seconds).]"), "{text}");
    assert_eq!(content(&cell(&server, "'alive'")), "'alive'");
}

/// Code that runs until a file exists.
const WAITING: &str = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\nx = 5";

#[test]
fn a_cell_waits_for_the_cell_of_a_client_that_has_left() {
    let server = start();
    let body = json!({"action": {"action": "run_ipython", "args": {"code": WAITING}}}).to_string();
    let mut client = TcpStream::connect(server.address()).unwrap();
    write!(
        client,
        "POST /execute_action HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{body}",
        server.key_line(),
        body.len()
    )
    .unwrap();
    until_exists(&server.work().join("begun"));
    drop(client);
    std::thread::scope(|scope| {
        let next = scope.spawn(|| cell(&server, "x"));
        // The second cell waits and is not refused.
        assert_eq!(server.get("/alive").status, 200);
        assert_eq!(server.output("echo done"), "done");
        fs::write(server.path("go"), "").unwrap();
        assert_eq!(content(&next.join().unwrap()), "5");
    });
}

#[test]
fn the_wait_for_other_cells_counts_towards_the_limit() {
    let server = start();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| cell(&server, WAITING));
        until_exists(&server.work().join("begun"));
        let second = server.action_within("run_ipython", json!({"code": "y = 1"}), Some(0.5));
        assert_eq!(second["extras"]["error_id"], "timed_out", "{second}");
        fs::write(server.path("go"), "").unwrap();
        first.join().unwrap();
    });
    assert!(
        content(&cell(&server, "y")).contains("NameError"),
        "a cell that timed out while waiting is not run later"
    );
}

#[test]
fn after_a_cell_that_ignores_interrupts_the_next_one_has_a_new_kernel() {
    let server = start();
    let stubborn = "import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(1000)";
    // The start of the kernel would count towards the limit.
    cell(&server, "0");
    let args = json!({"code": stubborn, "include_extra": false});
    let stuck = server.action_within("run_ipython", args, Some(0.5));
    assert!(content(&stuck).contains("[Execution timed out (0.5 seconds).]"), "{stuck}");
    let next = cell(&server, "'time' in globals()");
    let text = content(&next);
    assert!(text.starts_with("False\n[An earlier cell did not end"), "{text}");
    assert!(content(&cell(&server, "1")).starts_with('1'));
}

#[test]
fn without_the_plugin_there_are_no_cells() {
    let server = Server::start();
    let reply = server.event(&json!({"action": "run_ipython", "args": {"code": "1"}}));
    assert_eq!(reply.status, 501);
    assert!(reply.json()["detail"].as_str().unwrap().contains("JupyterRequirement not found"));
}

/// Uses the plugin `agent_skills`.
#[test]
fn cells_edit_files_as_the_edit_action_does() {
    let server = start();
    let (path, other) = (server.path("f.txt"), server.path("g.txt"));
    let edit = |arguments: &str| {
        content(&cell(&server, &format!("print(file_editor({arguments}))"))).to_owned()
    };
    let created = edit(&format!("command='create', path='{path}', file_text='one\\ntwo ü\\n'"));
    assert_eq!(created, format!("File created successfully at: {path}"));
    let steps = [
        ("'view', '{}', view_range=[2, 2]", None),
        ("'view', '{}'", Some(json!({"command": "view"}))),
        (
            "'str_replace', '{}', old_str='one', new_str='1'",
            Some(json!({"command": "str_replace", "old_str": "one", "new_str": "1"})),
        ),
        (
            "'insert', '{}', insert_line=0, new_str='0'",
            Some(json!({"command": "insert", "insert_line": 0, "new_str": "0"})),
        ),
        (
            "'str_replace', '{}', old_str='no'",
            Some(json!({"command": "str_replace", "old_str": "no"})),
        ),
        ("'undo_edit', '{}'", Some(json!({"command": "undo_edit"}))),
        ("'dance', '{}'", Some(json!({"command": "dance"}))),
    ];
    server.action("edit", json!({"path": other, "command": "create", "file_text": "one\ntwo ü\n"}));
    for (arguments, action) in steps {
        let printed = edit(&arguments.replace("{}", &path));
        match action {
            None => assert!(printed.ends_with("     2\ttwo ü"), "{printed}"),
            Some(mut action) => {
                action["path"] = json!(other);
                let told = server.action("edit", action.clone());
                assert_eq!(printed.replace(&path, &other), content(&told).trim_end(), "{action}");
            }
        }
    }
    assert_eq!(server.output(&format!("cat {path}")), "1\ntwo ü");
    // An interrupted cell, a forked child and a new kernel each get an editor.
    let code = format!(
        "import os\nif os.fork() == 0:\n    print(file_editor('view', '{path}'), flush=True)\n    os._exit(0)\nos.wait()\n\
         print(file_editor('undo_edit', '{path}'))"
    );
    let printed = cell(&server, &code);
    assert!(content(&printed).contains("undone successfully"), "{printed}");
    cell(&server, "os._exit(1)");
    assert!(edit(&format!("'undo_edit', '{path}'")).starts_with("ERROR:\nNo edit history"));
}
