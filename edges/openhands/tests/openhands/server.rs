//! Runs the real program in a directory of its own, and removes everything afterwards.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest time that anything may take, even on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(90);

pub struct Server {
    child: Option<Child>,
    home: TempDir,
    pub url: String,
    /// The lines that the program printed before its address.
    pub printed: String,
    agent: ureq::Agent,
    /// The key that clients must show; empty if there is none.
    pub key: String,
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub text: String,
}

/// How to start a server.
#[derive(Clone, Default)]
pub struct Options {
    pub arguments: Vec<String>,
    pub variables: Vec<(&'static str, String)>,
    pub key: Option<&'static str>,
    /// Seconds without output until a wait ends. By default so long that it never happens.
    pub quiet: Option<u64>,
    /// The content of `.bashrc`.
    pub start_up: Option<String>,
    /// Whether other users may enter the directory, which then also has a copy of the program.
    pub shared: bool,
    /// The user that starts the program, if it is not the user of the tests.
    pub user: Option<u32>,
    /// Whether the program is process 1 of a PID namespace, as in a container.
    pub first_process: bool,
}

/// The command that runs a program as process 1 of a new PID namespace, which ends with it.
const FIRST_PROCESS: [&str; 4] = ["--pid", "--fork", "--mount-proc", "--kill-child"];

/// Whether this user may create PID namespaces.
pub fn may_be_first_process() -> bool {
    let tried = Command::new("unshare").args(FIRST_PROCESS).arg("true").output();
    tried.is_ok_and(|tried| tried.status.success())
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&Options::default())
    }

    /// With a short limit for commands that print nothing.
    pub fn impatient() -> Self {
        Self::start_with(&Options { quiet: Some(1), ..Options::default() })
    }

    pub fn start_with(options: &Options) -> Self {
        // Below /tmp, because the path of a socket must be short.
        let home = tempfile::Builder::new().prefix("oh").tempdir_in("/tmp").unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let config = ureq::Agent::config_builder();
        // A new connection for each request: after refusing a request before its body was sent, the
        // server closes the connection, and a request that reuses it could fail.
        let config = config.max_idle_connections(0).http_status_as_error(false);
        let config = config.timeout_global(Some(LIMIT)).build();
        let (url, printed, key) = <(String, String, String)>::default();
        let mut server = Self { child: None, home, url, printed, agent: config.into(), key };
        if options.shared {
            server.share();
        }
        server.launch(options);
        server
    }

    /// Opens the directory to all users, with a copy of the program, because the build directory
    /// may be private. Another process copies it: a file that this process has open for writing
    /// cannot be executed.
    fn share(&self) {
        fs::set_permissions(self.home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut copy = Command::new("cp");
        let copied =
            copy.arg(env!("CARGO_BIN_EXE_openhands-edge")).arg(self.shared_program()).status();
        assert!(copied.unwrap().success());
    }

    fn shared_program(&self) -> PathBuf {
        self.home.path().join("openhands-edge")
    }

    /// Starts the program; also after [`Server::kill`].
    pub fn launch(&mut self, options: &Options) {
        let program = match options.shared {
            true => self.shared_program(),
            false => env!("CARGO_BIN_EXE_openhands-edge").into(),
        };
        let mut command = match options.first_process {
            true => Command::new("unshare"),
            false => Command::new(&program),
        };
        if options.first_process {
            command.args(FIRST_PROCESS).arg(&program);
        }
        if let Some(user) = options.user {
            command.uid(user).gid(user);
        }
        command.args(["serve", "0", "--working-dir"]).arg(self.work());
        command.arg("--state").arg(self.home.path().join("state")).args(&options.arguments);
        for name in [
            "SESSION_API_KEY",
            "RUNTIME_USERNAME",
            "RUNTIME_UID",
            "SU_TO_USER",
            "SANDBOX_GROUP_ID",
            "VSCODE_PORT",
            "SANDBOX_HOST",
            "XDG_RUNTIME_DIR",
            "XDG_STATE_HOME",
        ] {
            command.env_remove(name);
        }
        // A home directory without start-up files, so that the tests do not depend on the user's.
        let start_up = options.start_up.clone().unwrap_or_default();
        fs::write(self.home.path().join(".bashrc"), start_up).unwrap();
        command.env("HOME", self.home.path());
        command.env("NO_CHANGE_TIMEOUT_SECONDS", options.quiet.unwrap_or(600).to_string());
        command.envs(options.key.map(|key| ("SESSION_API_KEY", key)));
        command.envs(options.variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (printed, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = String::new();
            while !lines.contains("http://") && errors.read_line(&mut lines).unwrap() > 0 {}
            printed.send(lines).unwrap();
            // Read and drop the rest, so that the program is not blocked by a full pipe.
            let _ = errors.read_to_end(&mut Vec::new());
        });
        let printed = heard.recv_timeout(LIMIT).expect("the program says where it serves");
        let (printed, url) =
            printed.split_once("http://").unwrap_or_else(|| panic!("no address: {printed}"));
        self.printed = printed.to_owned();
        self.url = format!("http://{}", url.trim());
        let file =
            printed.split_once("the key in ").and_then(|(_, rest)| rest.split_once(" as X-"));
        let drawn = file.map(|(file, _)| fs::read_to_string(file).unwrap());
        self.key = options.key.map(str::to_owned).or(drawn).unwrap_or_default();
        self.child = Some(child);
    }

    /// The directory in which the shell starts.
    pub fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    pub fn path(&self, name: &str) -> String {
        self.work().join(name).to_str().unwrap().to_owned()
    }

    /// The address without the scheme.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// The header with the key, as a line.
    pub fn key_line(&self) -> String {
        format!("X-Session-API-Key: {}\r\n", self.key)
    }

    pub fn get(&self, path: &str) -> Reply {
        let request = self.agent.get(format!("{}{path}", self.url));
        reply(request.header("X-Session-API-Key", &self.key).call())
    }

    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.post_with(path, body, &[("X-Session-API-Key", &self.key)])
    }

    pub fn post_with(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request.header("Content-Type", "application/json").send(body))
    }

    /// Uploads a file as a form.
    pub fn upload(&self, query: &str, name: &str, content: &[u8]) -> Reply {
        let head = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), content, b"\r\n--edge--\r\n"].concat();
        let request = self.agent.post(format!("{}/upload_file{query}", self.url));
        let request = request.header("X-Session-API-Key", &self.key);
        reply(request.header("Content-Type", "multipart/form-data; boundary=edge").send(body))
    }

    /// Sends a body that is not text, with its headers.
    pub fn download(&self, path: &str) -> (ureq::http::HeaderMap, Vec<u8>) {
        let request = self.agent.get(format!("{}{path}", self.url));
        let mut answer = request.header("X-Session-API-Key", &self.key).call().unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap();
        (answer.headers().clone(), body)
    }

    /// Sends an event and returns any answer.
    pub fn event(&self, event: &Value) -> Reply {
        self.post("/execute_action", &json!({ "action": event }).to_string())
    }

    /// Sends an action, which must be answered with an observation.
    pub fn action(&self, name: &str, args: Value) -> Value {
        self.action_within(name, args, None)
    }

    pub fn action_within(&self, name: &str, args: Value, timeout: Option<f64>) -> Value {
        let reply = self.event(&json!({"action": name, "args": args, "timeout": timeout}));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    pub fn run(&self, command: &str) -> Value {
        self.action("run", json!({ "command": command }))
    }

    /// Sends input to the running command.
    pub fn input(&self, text: &str) -> Value {
        self.action("run", json!({"command": text, "is_input": true}))
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn output(&self, command: &str) -> String {
        let observation = self.settle(self.run(command));
        assert_eq!(exit_code(&observation), 0, "{observation}");
        content(&observation).to_owned()
    }

    /// Kills the program, as the system does when memory is short.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits for the end of a running command, and returns its output meanwhile.
    pub fn settle(&self, mut observation: Value) -> Value {
        while exit_code(&observation) == -1 {
            let mut next = self.run("");
            assert!(!content(&next).starts_with("ERROR: No previous"), "nothing runs");
            next["content"] = (content(&observation).to_owned() + content(&next)).into();
            observation = next;
        }
        observation
    }

    /// Asks the program to end, and waits for its end.
    pub fn end(&mut self) -> Option<i32> {
        signal(self.pid(), "TERM");
        self.wait()
    }

    /// Waits for the end of the program.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.take().unwrap().wait().unwrap().code()
    }

    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.end();
        }
        let socket = self.state().join("tmux");
        if socket.exists() {
            let mut command = Command::new("tmux");
            // Best effort: usually the tmux server has already ended.
            let _ = command.arg("-S").arg(socket).arg("kill-server").output();
        }
    }
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.unwrap().success());
}

pub fn content(observation: &Value) -> &str {
    observation["content"].as_str().unwrap()
}

pub fn exit_code(observation: &Value) -> i64 {
    observation["extras"]["metadata"]["exit_code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{observation}"))
}

pub fn metadata<'a>(observation: &'a Value, field: &str) -> &'a str {
    observation["extras"]["metadata"][field].as_str().unwrap_or_else(|| panic!("{observation}"))
}

pub fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Waits until a file exists.
pub fn until_exists(path: &Path) {
    until(&format!("{} is there", path.display()), || path.exists());
}

/// Waits until a condition is true.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn reply(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Reply {
    let mut answer = answer.unwrap();
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
    Reply { status, text }
}
