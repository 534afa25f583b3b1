//! Tests of uploads, downloads, lists, and the other routes.

use std::{
    fs,
    io::{Cursor, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use serde_json::{Value, json};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use crate::server::{Options, Server, until, until_exists};

/// Makes an archive of these names and contents.
fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file(*name, options.unix_permissions(0o755)).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// The names and contents of an archive, sorted.
fn unpacked(bytes: Vec<u8>) -> Vec<(String, String)> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).unwrap();
        assert_eq!(entry.compression(), CompressionMethod::Stored);
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        entries.push((entry.name().unwrap().into_owned(), content));
    }
    entries.sort();
    entries
}

#[test]
fn a_file_is_put_into_a_directory() {
    let server = Server::start();
    let destination = server.path("new/deep");
    for content in ["first", "second"] {
        let reply =
            server.upload(&format!("?destination={destination}"), "a file.txt", content.as_bytes());
        assert_eq!(reply.status, 200, "{reply:?}");
        let expected = format!(
            "{{\"filename\":\"a file.txt\",\"destination\":\"{destination}\",\"recursive\":false}}"
        );
        assert_eq!(reply.text, expected);
        assert_eq!(fs::read_to_string(server.path("new/deep/a file.txt")).unwrap(), content);
    }
}

#[test]
fn an_archive_is_unpacked() {
    let server = Server::start();
    let content = archive(&[("dir/a", "A"), ("dir/sub/b", "B")]);
    for (query, name) in [("&recursive=true", "x.zip"), ("", "x.zip")] {
        let destination = server.path("to");
        let reply = server.upload(&format!("?destination={destination}{query}"), name, &content);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(fs::read_to_string(server.path("to/dir/sub/b")).unwrap(), "B");
        let mode = fs::metadata(server.path("to/dir/a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(server.output("ls to"), "dir", "the archive itself is not kept");
        fs::remove_dir_all(server.path("to")).unwrap();
    }
}

#[test]
fn no_upload_leads_out_of_its_directory() {
    let server = Server::start();
    fs::create_dir(server.path("in")).unwrap();
    let query = format!("?destination={}&recursive=true", server.path("in"));
    for name in ["../escaped", "a/../../escaped", "/tmp/escaped-absolute"] {
        let reply = server.upload(&query, "x.zip", &archive(&[("fine", ""), (name, "x")]));
        assert!(
            !server.work().join("escaped").exists() && !Path::new("/tmp/escaped-absolute").exists()
        );
        if reply.status != 200 {
            assert_eq!(reply.json()["kind"], "outside_workspace", "{reply:?}");
            assert_eq!(server.output("ls in"), "", "nothing was unpacked");
        }
    }
    let query = format!("?destination={}", server.path("in/below"));
    assert_eq!(server.upload(&query, "../../sneaky", b"x").status, 200);
    assert_eq!(server.output("ls -d */below/sneaky sneaky 2>/dev/null || :"), "in/below/sneaky");
    for name in ["..", "", "a/.."] {
        assert_eq!(server.upload(&query, name, b"x").status, 422, "{name:?}");
    }
}

#[test]
fn bad_uploads_are_named_and_leave_nothing() {
    let server = Server::start();
    let here = server.work().to_str().unwrap().to_owned();
    for (query, name, status) in [
        ("?destination=relative".to_owned(), "a", 400),
        (format!("?destination={here}&recursive=true"), "a.txt", 400),
        (format!("?destination={here}"), "broken.zip", 400),
        (format!("?destination={here}&recursive=perhaps"), "a", 422),
    ] {
        let reply = server.upload(&query, name, b"not a zip");
        assert_eq!(reply.status, status, "{query}: {reply:?}");
        assert!(reply.json()["detail"].is_string());
    }
    let reply = server.post("/upload_file", "no form at all");
    assert_eq!(reply.status, 422, "{reply:?}");
    assert!(reply.json()["errors"].is_string());
    assert_eq!(server.output("ls -A"), "");
}

#[test]
fn an_archive_that_is_damaged_leaves_nothing() {
    let server = Server::start();
    let mut bytes = archive(&[("first", "fine"), ("second", "to be damaged")]);
    // The checksum of the second entry, in its own header and in the directory at the end of the
    // archive.
    for signature in [&b"PK\x03\x04"[..], b"PK\x01\x02"] {
        let headers = bytes.windows(4).enumerate().filter(|(_, found)| *found == signature);
        let second = headers.map(|(place, _)| place).nth(1).unwrap();
        let checksum = second + if signature[2] == 3 { 14 } else { 16 };
        bytes[checksum] ^= 0xff;
    }
    let reply = server.upload(&format!("?destination={}", server.path("new")), "x.zip", &bytes);
    assert_eq!((reply.status, &reply.json()["kind"]), (400, &json!("invalid")), "{reply:?}");
    assert_eq!(server.output("ls -A"), "");
}

#[test]
fn no_archive_follows_a_link_out_of_its_directory() {
    let server = Server::start();
    server.output("mkdir in out in/real && ln -s ../out in/link && ln -s real in/inner");
    let query = format!("?destination={}", server.path("in"));
    let reply = server.upload(&query, "x.zip", &archive(&[("link/escaped", "x")]));
    assert_eq!(reply.json()["kind"], "outside_workspace", "{reply:?}");
    assert_eq!(server.output("ls out"), "");
    assert_eq!(server.upload(&query, "x.zip", &archive(&[("inner/f", "x")])).status, 200);
    assert_eq!(server.output("cat in/real/f"), "x");
}

#[test]
fn the_error_for_a_large_body_is_an_object() {
    let server = Server::start();
    let reply = server.post("/list_files", &" ".repeat((64 << 20) + 1));
    assert_eq!(reply.status, 413);
    assert!(reply.json()["detail"].is_string(), "{reply:?}");
}

#[test]
fn a_download_omits_unreadable_files() {
    // Root can read everything.
    let user = rustix::process::geteuid().is_root().then_some(65534);
    let server = Server::start_with(&Options { shared: true, user, ..Options::default() });
    fs::set_permissions(server.work(), fs::Permissions::from_mode(0o777)).unwrap();
    server.output("mkdir -p d/closed d/open && echo a > d/open/a && echo b > d/closed/b");
    server.output("echo c > d/c && chmod 0 d/closed d/c");
    let (_, body) = server.download(&format!("/download_files?path={}", server.path("d")));
    assert_eq!(unpacked(body), [("open/a".to_owned(), "a\n".to_owned())]);
    let reply = server.get(&format!("/download_files?path={}", server.path("d/closed")));
    assert_eq!(reply.status, 403, "{reply:?}");
    server.output("chmod 755 d/closed");
}

#[test]
fn a_directory_is_downloaded_as_an_archive() {
    let server = Server::start();
    server.output("mkdir -p d/sub/.hidden d/empty && cd d && echo a > a && echo b > sub/b");
    server.output("echo c > sub/.hidden/c && ln -s a link && ln -s . circle && ln -s none broken");
    let (headers, body) = server.download(&format!("/download_files?path={}", server.path("d")));
    assert_eq!(headers["content-type"], "application/zip");
    assert_eq!(headers["content-disposition"], "attachment; filename=\"d.zip\"");
    let expected = [("a", "a\n"), ("link", "a\n"), ("sub/.hidden/c", "c\n"), ("sub/b", "b\n")];
    assert_eq!(unpacked(body), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));

    let (_, body) = server.download(&format!("/download_files?path={}", server.path("d/a")));
    assert_eq!(unpacked(body), [("a".to_owned(), "a\n".to_owned())], "a file is an archive of one");
}

#[test]
fn bad_downloads_are_named() {
    let server = Server::start();
    for (query, status) in [("?path=relative", 400), ("?path=/no/such/place", 404), ("", 422)] {
        let reply = server.get(&format!("/download_files{query}"));
        assert_eq!(reply.status, status, "{query}: {reply:?}");
        assert!(reply.json()["detail"].is_string());
    }
}

#[test]
fn names_are_listed_with_directories_first() {
    let server = Server::start();
    server.output(
        "mkdir -p zeta Alpha .git && touch b A .env && ln -s zeta way && ln -s none broken",
    );
    let list = |body: Value| server.post("/list_files", &body.to_string()).json();
    let all = json!([".git/", "Alpha/", "way/", "zeta/", ".env", "A", "b"]);
    assert_eq!(list(json!({})), all);
    assert_eq!(list(json!({"path": null})), all);
    assert_eq!(list(json!({ "path": server.work() })), all);
    server.output("cd zeta && touch inside");
    assert_eq!(list(json!({})), all, "the initial directory, not the shell's");
    assert_eq!(list(json!({"path": "zeta"})), json!(["inside"]));
    for path in ["missing", "b", "/root/no"] {
        assert_eq!(list(json!({ "path": path })), json!([]), "{path}");
    }
    assert_eq!(server.post("/list_files", "").json(), all);
    assert_eq!(server.post("/list_files", "nonsense").status, 422);
}

#[test]
fn confinement_holds_for_transfers() {
    let arguments = vec!["--confine".to_owned()];
    let server = Server::start_with(&Options { arguments, ..Options::default() });
    server.output("ln -s /etc link");
    assert_eq!(server.upload("?destination=/tmp", "a", b"x").json()["kind"], "outside_workspace");
    let into_link = format!("?destination={}", server.path("link"));
    assert_eq!(server.upload(&into_link, "a", b"x").json()["kind"], "outside_workspace");
    for path in ["/etc".to_owned(), server.path("link")] {
        let reply = server.get(&format!("/download_files?path={path}"));
        assert_eq!(reply.json()["kind"], "outside_workspace", "{reply:?}");
        assert_eq!(server.post("/list_files", &json!({ "path": path }).to_string()).text, "[]");
    }
}

#[test]
fn an_archive_may_be_unpacked_into_the_workspace_itself() {
    let arguments = vec!["--confine".to_owned()];
    let server = Server::start_with(&Options { arguments, ..Options::default() });
    let query = format!("?destination={}&recursive=true", server.work().display());
    // Names with a special meaning on other systems.
    let entries = [("./a", "1"), ("d/b\\c", "2"), ("d/e:f", "3")];
    let reply = server.upload(&query, "x.zip", &archive(&entries));
    assert_eq!(reply.status, 200, "{reply:?}");
    for (name, content) in entries {
        assert_eq!(fs::read_to_string(server.work().join(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn tool_servers_are_declined_politely() {
    let server = Server::start();
    let post = |body: Value| server.post("/update_mcp_server", &body.to_string());
    let accepted = r#"{"detail":"MCP server updated successfully","router_error_log":""}"#;
    assert_eq!(post(json!([])).text, accepted);
    let one = post(json!([{"name": "fetch", "command": "uvx", "args": ["x"], "env": {"A": "b"}}]));
    assert_eq!(
        (one.status, &one.json()["detail"]),
        (200, &json!("MCP server updated successfully"))
    );
    assert!(one.json()["router_error_log"].as_str().unwrap().contains("fetch"));
    let reply = post(json!({}));
    let text = "Request must be a list of MCP tools to sync";
    assert_eq!((reply.status, &reply.json()["detail"]), (400, &json!(text)));
    for item in [json!({"name": "x"}), json!({"name": "a b", "command": "c"}), json!(3)] {
        assert_eq!(post(json!([item])).status, 400, "{item}");
    }
}

#[test]
fn the_editor_is_started_where_there_is_one() {
    let plain = Server::start();
    assert_eq!(plain.get("/vscode/connection_token").text, r#"{"token":null}"#);

    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("editor");
    let seen = home.path().join("seen");
    let script = format!(
        "#!/bin/sh\nprintf '%s ' \"$@\" > {0}.new\ncat \"$2\" > {0}.token\n\
         sleep 1000 &\necho $! > {0}.pid\nmv {0}.new {0}\nwait\n",
        seen.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = ["--plugins", "vscode", "--vscode-server", program.to_str().unwrap()];
    let options = Options {
        arguments: arguments.map(str::to_owned).to_vec(),
        variables: vec![
            ("VSCODE_PORT", "45678".into()),
            ("RUNTIME_ID", "abc".into()),
            ("RUNTIME_URL", "https://host.example/abc/x".into()),
        ],
        ..Options::default()
    };
    let mut server = Server::start_with(&options);
    let token = |server: &Server| {
        let answer = server.get("/vscode/connection_token").json();
        answer["token"].as_str().unwrap().to_owned()
    };
    let first_token = token(&server);
    let parts = first_token.split('-').map(str::len).collect::<Vec<_>>();
    assert_eq!(parts, [8, 4, 4, 4, 12], "a UUID: {first_token}");
    assert_eq!(&first_token[14..15], "4", "a random one: {first_token}");
    until_exists(&seen);
    let arguments = fs::read_to_string(&seen).unwrap();
    assert!(arguments.contains("--port 45678"), "{arguments}");
    assert!(arguments.contains("--server-base-path /abc/vscode"), "{arguments}");
    assert!(!arguments.contains(&first_token), "no secret in arguments");
    assert_eq!(fs::read_to_string(seen.with_extension("token")).unwrap(), first_token);

    // Programs that the editor's program has started end, too, however the server ends.
    let started = || {
        until_exists(&seen);
        let pid = fs::read_to_string(seen.with_extension("pid")).unwrap();
        fs::remove_file(&seen).unwrap();
        Path::new("/proc").join(pid.trim())
    };
    let first = started();
    assert!(first.exists());
    server.kill();
    until("the editor of a killed server has ended", || !first.exists());
    server.launch(&options);
    assert_ne!(token(&server), first_token);
    let second = started();
    assert_eq!(server.end(), Some(0));
    until("the editor has ended with its server", || !second.exists());
}

#[test]
fn the_description_is_served() {
    let server = Server::start();
    let description = server.get("/openapi.json").json();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let reply = match methods.get("get") {
            Some(_) => server.get(path),
            None => server.post(path, "{}"),
        };
        assert!(![404, 405].contains(&reply.status), "{path}: {reply:?}");
    }
}

#[test]
fn a_command_outlives_the_reader_of_its_stream() {
    let server = Server::start();
    let command = "mkfifo go; echo begun; read x < go; echo $x > finished";
    let body = json!({"action": {"action": "run", "args": {"command": command}}});
    let request = ureq::post(format!("{}/execute_action_stream", server.url));
    let response = request.header("X-Session-API-Key", &server.key).send(body.to_string());
    let mut reader = response.unwrap().into_body().into_reader();
    let (mut seen, mut block) = (Vec::new(), [0; 256]);
    while !String::from_utf8_lossy(&seen).contains("begun") {
        let read = reader.read(&mut block).unwrap();
        assert!(read > 0, "the stream ended too early");
        seen.extend_from_slice(&block[..read]);
    }
    drop(reader);
    fs::write(server.path("go"), "on\n").unwrap();
    until_exists(&server.work().join("finished"));
    assert_eq!(server.output("cat finished"), "on");
}

#[test]
fn a_stream_sends_output_as_it_comes() {
    let server = Server::start();
    // Terminal queries that tmux does not answer: its answers would appear as typed input.
    let body = json!({"action": {"action": "run", "args": {
        "command": "mkfifo go; echo begun; read x < go; printf 'ende ä\\033[?996n\\033]11;?\\a\\n'"
    }}});
    let response = ureq::post(format!("{}/execute_action_stream", server.url))
        .header("Content-Type", "application/json")
        .header("X-Session-API-Key", &server.key)
        .send(body.to_string())
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut reader = std::io::BufReader::new(response.into_body().into_reader());
    let mut next = || {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("event", value)) => name = value.to_owned(),
                Some(("data", value)) => data += value,
                _ if !data.is_empty() => break,
                _ => {}
            }
        }
        (name, serde_json::from_str::<Value>(&data).unwrap())
    };
    assert_eq!(next().0, "start");
    let mut seen = String::new();
    while !seen.contains("begun") {
        let (name, data) = next();
        assert_eq!(name, "output");
        seen += data["content"].as_str().unwrap();
    }
    // The command is still running, and is only now allowed to go on.
    fs::write(server.path("go"), "x\n").unwrap();
    let complete = loop {
        match next() {
            (name, data) if name == "output" => seen += data["content"].as_str().unwrap(),
            (name, data) => {
                assert_eq!(name, "complete");
                break data;
            }
        }
    };
    assert_eq!(seen.replace("\r\n", "\n"), "begun\nende ä\n");
    assert_eq!(complete["observation"], "run");
    assert_eq!(complete["content"], "begun\nende ä");
    let bad = server.post("/execute_action_stream", "{}");
    assert_eq!(bad.status, 422);
}

/// The archive is made in a temporary file, which must not fill the disk.
#[test]
fn a_download_has_a_limit() {
    let server = Server::start();
    fs::create_dir(server.path("d")).unwrap();
    fs::write(server.path("d/a"), "a").unwrap();
    fs::File::create(server.path("d/huge")).unwrap().set_len(1 << 43).unwrap();
    for path in ["d", "d/huge"] {
        let reply = server.get(&format!("/download_files?path={}", server.path(path)));
        assert_eq!(reply.status, 413, "{reply:?}");
    }
    let (_, archive) = server.download(&format!("/download_files?path={}", server.path("d/a")));
    assert!(!archive.is_empty());
}
