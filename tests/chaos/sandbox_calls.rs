//! Calls of the sandbox's tools, and the errors that they may return.

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine};
use harness::{Socket, wait_until};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::{Value, json};

/// Error kinds that the sandbox may return while a fault is active.
const KINDS: [&str; 8] = [
    "NoSpace",
    "Conflict",
    "NotFound",
    "HostGone",
    "InternalError",
    "Timeout",
    "Overloaded",
    "ShuttingDown",
];

/// Writes a file of the workspace. Afterwards it must have the new content or, if a fault is active and the
/// write failed, the old content.
pub fn use_file(socket: &mut Socket, workspace: &Path, random: &mut StdRng, must_succeed: bool) {
    let path = workspace.join("file");
    let before = std::fs::read(&path).ok();
    let text = word(random).repeat(random.random_range(1..5000));
    let params = json!({"path": "file", "text": text});
    match request(socket, "file/write", &params) {
        Ok(_) => assert_eq!(std::fs::read_to_string(&path).unwrap(), text),
        Err(error) => {
            assert!(!must_succeed, "cannot write: {error}");
            assert_eq!(std::fs::read(&path).ok(), before, "the file changed despite {error}");
        }
    }
    let names: Vec<_> = std::fs::read_dir(workspace).unwrap().flatten().collect();
    let expected = usize::from(path.exists());
    assert_eq!(names.len(), expected, "left over in the workspace: {names:?}");
}

/// Sends one request and checks that it gets exactly one answer: a result, or an error of an allowed kind.
pub fn request(socket: &mut Socket, method: &str, params: &Value) -> Result<Value, Value> {
    let id = socket.send_request(method, params.clone());
    let answer = socket.answer_to(id);
    let ping = socket.send_request("bridge/ping", Value::Null);
    loop {
        let message = socket.receive();
        if message["id"] == ping {
            break;
        }
        assert_ne!(message["id"], id, "a second answer: {message}");
    }
    match &answer["error"] {
        Value::Null => Ok(answer["result"].clone()),
        error => {
            let kind = error["data"]["kind"].as_str().unwrap_or_default();
            assert!(KINDS.contains(&kind), "{method}: {error}");
            Err(error.clone())
        }
    }
}

/// Waits until shells work again after the tmux server, or the connection to it, was lost. Calls before that
/// fail with `HostGone`.
pub fn expect_new_tmux(socket: &mut Socket) {
    let probe = json!({"shell": "probe"});
    wait_until("a shell in a new tmux server", || {
        request(socket, "shell/create", &probe)
            .inspect_err(|error| assert_eq!(error["data"]["kind"], "HostGone", "{error}"))
            .is_ok()
    });
    request(socket, "shell/close", &probe).unwrap();
}

pub fn list(socket: &mut Socket) -> Vec<Value> {
    let mut listed = socket.call("shell/list", json!({}));
    listed["shells"].as_array_mut().map(std::mem::take).unwrap_or_default()
}

pub fn info(socket: &mut Socket, name: &str) -> Value {
    let found = list(socket).into_iter().find(|shell| shell["shell"] == name);
    found.unwrap_or_else(|| panic!("shell {name} is lost"))
}

pub fn wait_params(name: &str) -> Value {
    json!({"shell": name, "limitMs": 20_000})
}

pub fn wait_for_end(socket: &mut Socket, name: &str) -> Value {
    let ended = socket.call("shell/wait", wait_params(name));
    assert_eq!(ended["state"], "finished", "the command in {name} does not end: {ended}");
    ended
}

/// Reads a range of a shell's log.
pub fn read(socket: &mut Socket, name: &str, start: u64, end: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let from = start + bytes.len() as u64;
        let params =
            json!({"shell": name, "from": from, "bytes": (end - from).min(1 << 20), "raw": true});
        let part = socket.call("shell/read", params);
        let part = BASE64_STANDARD.decode(part["base64"].as_str().unwrap()).unwrap();
        if part.is_empty() {
            return bytes;
        }
        bytes.extend(part);
    }
}

pub fn word(random: &mut StdRng) -> String {
    format!("{:016x}", random.next_u64())
}
