//! The surroundings of the hostile program: places inside and outside of the walls, a process to attack, and sockets.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sandbox_isolation::{Level, Policy, become_command};
use tempfile::TempDir;

/// The variable with the role of this process.
const ROLE: &str = "HOSTILE_ROLE";
/// The variable with what the hostile program must know of the stage.
const STAGE: &str = "HOSTILE_STAGE";
/// The variable with the policy, one argument in a line.
const POLICY: &str = "HOSTILE_POLICY";
/// Variables that the launcher has, with secrets that lead out.
pub(crate) const SECRET_VARIABLES: [&str; 3] =
    ["RUN_BRIDGE_TOKEN", "EVOLVE_RUN_BRIDGE_TOKEN", "SESSION_API_KEY"];
/// A user without any rights, if the test runs as root.
const NOBODY: u32 = 65_534;

/// The user that runs the hostile program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Ordinary,
    Root,
}

pub(crate) struct Stage {
    base: PathBuf,
    pub(crate) user: User,
    pub(crate) port: u16,
    pub(crate) abstract_name: String,
    /// A process of the same user, outside of the walls.
    pub(crate) victim: i64,
    /// The process group of that process.
    pub(crate) group: i64,
    /// Descriptors that the hostile program got from the launcher.
    pub(crate) inherited: Vec<i32>,
    /// The directory, the victim and the sockets, which end with the test. `None` in the hostile program.
    kept: Option<Kept>,
}

struct Kept {
    directory: TempDir,
    victim: Child,
    sockets: (TcpListener, UdpSocket, UnixListener, UnixListener),
}

impl User {
    /// Whether the test can start processes of this user. Prints why not.
    pub(crate) fn can_be_played(self) -> bool {
        let root = is_root();
        if self == Self::Root && !root {
            eprintln!("skipped: only root can try what root can do");
        }
        self == Self::Ordinary || root
    }

    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Ordinary if is_root() => NOBODY,
            Self::Ordinary => rustix::process::getuid().as_raw(),
        }
    }

    fn gid(self) -> u32 {
        match self {
            Self::Ordinary if !is_root() => rustix::process::getgid().as_raw(),
            _ => self.uid(),
        }
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

impl Stage {
    pub(crate) fn new(user: User) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["workspace", "temporary", "outside", "run/bridge/state/shells/a"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in
            ["outside/file", "outside/other", "run/bridge/connection.json", "run/bridge/lock"]
        {
            fs::write(base.join(name), "secret").unwrap();
        }
        fs::write(base.join("run/bridge/state/shells/a/log"), "secret").unwrap();
        // An ordinary user may not reach the directory of the build.
        fs::copy(env::current_exe().unwrap(), base.join("program")).unwrap();
        let unix = UnixListener::bind(base.join("outside/socket")).unwrap();
        for entry in walk(&base) {
            chown(&entry, Some(user.uid()), None).unwrap();
        }
        fs::set_permissions(&base, Permissions::from_mode(0o755)).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        let abstract_name = format!("run-bridge-test-{}-{port}", std::process::id());
        let name = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = (tcp, udp, unix, UnixListener::bind_addr(&name).unwrap());
        let mut victim = Command::new("sleep");
        victim.arg("600").stdin(Stdio::null()).process_group(0);
        victim.uid(user.uid()).gid(user.gid());
        let victim = victim.spawn().unwrap();
        let pid = i64::from(victim.id());
        let kept = Some(Kept { directory, victim, sockets });
        Self {
            base,
            user,
            port,
            abstract_name,
            victim: pid,
            group: pid,
            inherited: Vec::new(),
            kept,
        }
    }

    pub(crate) fn policy(&self, level: Level) -> Policy {
        let temporary = self.base.join("temporary");
        let unreadable = vec![self.hidden()];
        Policy { unreadable, ..Policy::for_workspace(level, &self.workspace(), &temporary) }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.join("workspace")
    }

    /// A file that belongs to the user and lies outside of the walls.
    pub(crate) fn outside(&self) -> PathBuf {
        self.base.join("outside/file")
    }

    pub(crate) fn unix_socket(&self) -> PathBuf {
        self.base.join("outside/socket")
    }

    /// The directory that confined programs must not read.
    pub(crate) fn hidden(&self) -> PathBuf {
        self.base.join("run/bridge")
    }

    pub(crate) fn connection_file(&self) -> PathBuf {
        self.hidden().join("connection.json")
    }

    /// A file that appears only when the hostile program is already confined.
    pub(crate) fn later_connection_file(&self) -> PathBuf {
        self.hidden().join("later.json")
    }

    /// Runs the hostile program under this policy, and returns what it prints.
    pub(crate) fn run(&self, policy: &Policy) -> String {
        // It is left from an earlier run, or was never there.
        let _ = fs::remove_file(self.later_connection_file());
        fs::write(self.base.join("outside/other"), "secret").unwrap();
        chown(self.base.join("outside/other"), Some(self.user.uid()), None).unwrap();
        let arguments = policy.to_arguments();
        let arguments: Vec<_> = arguments.iter().map(|it| it.to_str().unwrap()).collect();
        let user = self.user == User::Root;
        let facts = format!("{user}\n{}\n{}\n{}", self.port, self.abstract_name, self.victim);
        let mut program = Command::new(self.base.join("program"))
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .envs([(ROLE, "launcher"), (POLICY, &arguments.join("\n")), (STAGE, &facts)])
            .envs(SECRET_VARIABLES.map(|name| (name, "secret")))
            .current_dir(&self.base)
            .uid(self.user.uid())
            .gid(self.user.gid())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut output = String::new();
        for line in BufReader::new(program.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if line.contains("confined") {
                fs::write(self.later_connection_file(), "secret").unwrap();
                let uid = Some(self.user.uid());
                chown(self.later_connection_file(), uid, None).unwrap();
                drop(program.stdin.take());
            }
            output.push_str(&line);
            output.push('\n');
        }
        assert!(program.wait().unwrap().success(), "{output}");
        output
    }

    /// The stage as the hostile program sees it.
    fn from_environment() -> Self {
        let facts = env::var(STAGE).unwrap();
        let [user, port, abstract_name, victim] = *facts.split('\n').collect::<Vec<_>>() else {
            panic!("{facts}")
        };
        let user = if user == "true" { User::Root } else { User::Ordinary };
        let victim = victim.parse().unwrap();
        Self {
            base: env::current_dir().unwrap(),
            user,
            port: port.parse().unwrap(),
            abstract_name: abstract_name.to_owned(),
            victim,
            group: victim,
            inherited: descriptors(),
            kept: None,
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(Kept { mut victim, directory, sockets }) = self.kept.take() {
            victim.kill().unwrap();
            victim.wait().unwrap();
            drop((sockets, directory));
        }
    }
}

/// The open descriptors of this process, without the usual three.
fn descriptors() -> Vec<i32> {
    let directory = fs::read_dir("/proc/self/fd").unwrap();
    let numbers = directory.map(|it| it.unwrap().file_name().to_str().unwrap().parse().unwrap());
    let numbers: Vec<i32> = numbers.collect();
    // One was open only for reading the directory.
    let is_open = |number: &i32| fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    numbers.into_iter().filter(|number| *number > 2 && is_open(number)).collect()
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        found.extend(entries.flat_map(|entry| walk(&entry.unwrap().path())));
    }
    found
}

/// Plays the role that the environment gives this process, if it gives one.
pub(crate) fn play_role() {
    match env::var(ROLE).as_deref() {
        Ok("launcher") => {
            let arguments = env::var(POLICY).unwrap();
            let arguments = arguments.split('\n').chain(["--"]);
            let policy = Policy::from_arguments(&mut arguments.map(Into::into)).unwrap();
            let program = env::current_exe().unwrap();
            let words =
                ["env", &format!("{ROLE}=hostile"), program.to_str().unwrap(), "--exact", "role"];
            let words = words.into_iter().chain(["--nocapture", "--test-threads=1"]);
            panic!("{}", become_command(&policy, words.map(Into::into), None).unwrap_err());
        }
        Ok("hostile") => {
            let stage = Stage::from_environment();
            println!("\nconfined");
            // Wait for what the test does outside.
            std::io::stdin().read_line(&mut String::new()).unwrap();
            for (name, way) in crate::all_ways() {
                match way(&stage) {
                    Ok(how) => println!("way {name}: got out: {how}"),
                    Err(why) => println!("way {name}: kept: {why}"),
                }
            }
        }
        _ => {}
    }
}
