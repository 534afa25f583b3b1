//! `openhands-edge serve`: reads flags and variables, and starts the server with them.

use std::{
    env, fs,
    io::{self, IsTerminal as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use bridge_protocol::methods::shell::ShellName;
use clap::{Args, ValueEnum};
use openhands_edge::action::{Grammar, Settings};
use openhands_edge::action_server::{self, Access, EditorSettings, Plugins};
use rustix::fs as system_files;
use sandbox_files::Workspace;
use sandbox_host::{CellSettings, state};
use sandbox_isolation::{Level, Network, Policy};
use sandbox_pages::{Browser, CHROMIUM};
use sandbox_shells::{Config, ShellArguments};
use sandbox_worker::Worker;
use sha2::{Digest as _, Sha256};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{first_process, key::KeyFile, user::TargetUser};

/// The variable with the key that clients must show. It is not a flag, because all users can see
/// arguments.
const KEY_VARIABLE: &str = "SESSION_API_KEY";

/// The flags are those of OpenHands' server, so that its clients can start this server instead, and
/// a few more
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The port; 0 for any free port
    port: u16,
    /// The directory in which the shell starts; it is created if it is missing
    #[arg(long, default_value = ".")]
    working_dir: PathBuf,
    /// Features to serve
    #[arg(long, num_args = 0.., value_enum)]
    plugins: Vec<Plugin>,
    /// The user that runs shells, cells and file actions. If root starts the server, it becomes
    /// this user, who is created if necessary, unless SU_TO_USER is false. RUNTIME_USERNAME
    /// overrides this. [default: the current user]
    #[arg(long)]
    username: Option<String>,
    /// The user id for a user that is created; RUNTIME_UID overrides this. [default: the next free
    /// one]
    #[arg(long)]
    user_id: Option<u32>,
    /// Show web pages. This is the default
    #[arg(long)]
    enable_browser: bool,
    /// Do not show web pages
    #[arg(long, overrides_with = "enable_browser")]
    no_enable_browser: bool,
    /// The Chromium that renders web pages; without it, they are fetched without running scripts
    #[arg(long, value_name = "PROGRAM", default_value = CHROMIUM)]
    browser_program: PathBuf,
    /// Accepted for compatibility, without effect
    #[arg(long)]
    browsergym_eval_env: Option<String>,
    /// How many seconds a command may print nothing before the wait for it ends
    #[arg(long, env = "NO_CHANGE_TIMEOUT_SECONDS", default_value_t = 10)]
    no_change_timeout: u64,
    /// The address to listen on. Other addresses than loopback need SESSION_API_KEY or
    /// --without-key
    #[arg(long, env = "SANDBOX_HOST", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Let clients use the server without a key. Everybody who can reach the port, on loopback
    /// every user of this machine, can then run commands as the user of the server, and read and
    /// write that user's files. Use it only for a container whose port only its owner can reach,
    /// and for clients that show no key, such as OpenHands' DockerRuntime. If SESSION_API_KEY is
    /// set, clients must show it nevertheless. Without SESSION_API_KEY and this flag, the server
    /// draws a key, prints it, and removes it when it ends; `openhands-edge key PORT` prints it
    /// again
    #[arg(long)]
    without_key: bool,
    /// Confine file actions, uploads and downloads to the working directory. This does not confine
    /// commands: use --require for that, which implies this flag
    #[arg(long)]
    confine: bool,
    /// The policy of commands; their workspace is the working directory
    #[command(flatten)]
    shells: ShellArguments,
    /// The state directory of the shells: a new or an empty one, or that of an earlier server. A
    /// server that is started again with the same directory adopts the shell of a killed server.
    /// [default: one per port, user and working directory]
    #[arg(long)]
    state: Option<PathBuf>,
    /// The Python for run_ipython; it must have ipykernel. [default: the first on the PATH that has
    /// it]
    #[arg(long, value_name = "PROGRAM")]
    kernel_python: Option<PathBuf>,
    /// The editor's server program for the vscode plugin; VSCODE_PORT is its port
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "/openhands/.openvscode-server/bin/openvscode-server"
    )]
    vscode_server: PathBuf,
    /// Add a trace to error observations. OpenHands' own clients cannot read them
    #[arg(long)]
    debug: bool,
}

/// Features that OpenHands calls plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Plugin {
    /// A kernel for `run_ipython`
    Jupyter,
    /// `file_editor` in the cells of that kernel
    AgentSkills,
    /// An editor in the browser
    Vscode,
}

pub(crate) fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    if first_process::is_first_process() {
        return first_process::run_as_child().context("starting the server as a child");
    }
    let given = env::var(KEY_VARIABLE).unwrap_or_default();
    ensure!(
        arguments.host.is_loopback() || !given.is_empty() || arguments.without_key,
        "other machines can reach {}: set {KEY_VARIABLE} to a secret that clients must show, or listen on \
         127.0.0.1",
        arguments.host
    );
    let target = TargetUser::new(arguments.username.clone(), arguments.user_id)?;
    target.switch(&arguments.working_dir)?;
    fs::create_dir_all(&arguments.working_dir)
        .with_context(|| format!("making {}", arguments.working_dir.display()))?;
    let cwd = arguments.working_dir.canonicalize().context("finding the working directory")?;
    system_files::access(&cwd, system_files::Access::EXEC_OK).with_context(|| {
        format!("entering {}: choose a --working-dir that this user may enter", cwd.display())
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = SocketAddr::new(arguments.host, arguments.port);
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
        let address = listener.local_addr()?;
        // Removes its file when it is dropped, at the end of the server.
        let drawn = match given.is_empty() && !arguments.without_key {
            true => Some(KeyFile::draw(address)?),
            false => None,
        };
        let access = match &drawn {
            Some(drawn) => Access::with_key(drawn.key()),
            None if given.is_empty() => Access::without_key(),
            None => Access::with_key(&given),
        };
        let name = shell_name(target.name);
        let root = match &arguments.state {
            Some(root) => root.clone(),
            None => {
                let place =
                    state::runtime_directory().context("choose a directory with --state")?;
                place.join(state_name(address.port(), &name, &cwd))
            }
        };
        let shells = arguments.shells.config(&root, arguments.shells.policy(&cwd))?;
        let actions = Settings {
            main: ShellName(main_shell(&name, &shells.policy)),
            grammar: Grammar::new(&shells.bash, Worker::new(&shells.program)),
            quiet: Duration::from_secs(arguments.no_change_timeout),
            pages: has_pages(&arguments, &shells),
        };
        if let Some(drawn) = &drawn {
            // A file or a journal would keep the key.
            let key = match io::stderr().is_terminal() {
                true => drawn.key().to_owned(),
                false => format!("see `openhands-edge key {}`", address.port()),
            };
            eprintln!(
                "openhands-edge: clients must show the key in {} as X-Session-API-Key: {key}",
                drawn.path().display(),
            );
        }
        // Before the address is printed: whoever reads it may send the signal.
        let stop = stop_signal()?;
        eprintln!("openhands-edge: serving {} on http://{address}", cwd.display());
        let plugins = Plugins {
            jupyter: arguments.plugins.contains(&Plugin::Jupyter),
            editor: editor(&arguments, &cwd, &shells.root, &shells.policy),
        };
        let sandbox = sandbox(&arguments, &cwd, shells)?;
        let traces = arguments.debug;
        let config = action_server::Config { sandbox, actions, access, traces, plugins };
        action_server::serve(config, listener, stop).await?;
        anyhow::Ok(ExitCode::SUCCESS)
    })
}

/// The name of the agent's shell. It depends on the policy: a server with a policy must not adopt a
/// shell that was started without it or with other limits.
fn main_shell(name: &str, policy: &Policy) -> String {
    if policy.is_empty() {
        return format!("openhands-{name:.40}");
    }
    let mut digest = Sha256::new();
    for argument in policy.to_arguments() {
        digest.update(argument.as_bytes());
        digest.update([0]);
    }
    let digest = digest.finalize();
    format!("{}-{:02x}{:02x}{:02x}-{name:.40}", policy.level, digest[0], digest[1], digest[2])
}

/// A user's name, with characters replaced that the name of a shell may not have.
fn shell_name(username: Option<String>) -> String {
    let username = username.or_else(|| env::var("USER").ok()).unwrap_or_else(|| "user".into());
    username.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-")
}

/// Whether pages are shown. They are fetched outside the policy, so they would bypass a restricted
/// network.
fn has_pages(arguments: &ServeArguments, shells: &Config) -> bool {
    !arguments.no_enable_browser && shells.policy.network == Network::Unrestricted
}

/// The settings of the sandbox that the actions use.
fn sandbox(
    arguments: &ServeArguments,
    cwd: &Path,
    shells: Config,
) -> anyhow::Result<sandbox_host::Settings> {
    // If commands are confined, file actions must be, too.
    let workspace = match arguments.confine || shells.require > Level::None {
        true => Workspace::confined(cwd)?,
        false => Workspace::whole_file_system(),
    };
    let has = |plugin| arguments.plugins.contains(&plugin);
    Ok(sandbox_host::Settings {
        directory: cwd.to_owned(),
        workspace,
        browser: has_pages(arguments, &shells).then(|| Browser {
            chromium: arguments.browser_program.clone(),
            worker: Worker::new(&shells.program),
        }),
        cells: has(Plugin::Jupyter).then(|| CellSettings {
            python: arguments.kernel_python.clone(),
            confinement: shells.confinement(),
            prelude: has(Plugin::AgentSkills).then(|| action_server::prelude(&shells.program)),
            // Clients of OpenHands cannot ask for a restart.
            restart_stuck: true,
        }),
        shells,
    })
}

/// The settings of the editor, if it is requested, has a port and is installed.
fn editor(
    arguments: &ServeArguments,
    cwd: &Path,
    state: &Path,
    policy: &Policy,
) -> Option<EditorSettings> {
    let port = env::var("VSCODE_PORT").ok()?.parse().ok()?;
    let wanted = arguments.plugins.contains(&Plugin::Vscode) && arguments.vscode_server.exists();
    if wanted && !policy.is_empty() {
        eprintln!(
            "openhands-edge: the editor is not started, because the policy would not apply to its terminals"
        );
        return None;
    }
    let base_path = env::var("OPENVSCODE_SERVER_BASE_PATH").ok().and_then(as_base).or_else(|| {
        let (id, url) = (env::var("RUNTIME_ID").ok()?, env::var("RUNTIME_URL").ok()?);
        let path = url.split_once("://").map_or(&*url, |(_, rest)| rest).split_once('/')?.1;
        path.starts_with(&id).then(|| format!("/{id}/vscode"))
    });
    let folder = env::var_os("WORKSPACE_MOUNT_PATH_IN_SANDBOX").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_dir()).unwrap_or_else(|| cwd.to_owned());
    let program = arguments.vscode_server.clone();
    wanted.then(|| EditorSettings { program, port, folder, base_path, state: state.to_owned() })
}

/// The path in the editor's form: with a leading slash and no trailing one; `None` if it is empty.
fn as_base(path: String) -> Option<String> {
    let names = path.trim_matches([' ', '/']);
    (!names.is_empty()).then(|| format!("/{names}"))
}

/// The name of the state directory. Different servers must not adopt one another's shells.
fn state_name(port: u16, username: &str, cwd: &Path) -> String {
    let digest = Sha256::digest(format!("{username}\n{}", cwd.display()));
    format!("serve-{port}-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
}

/// Completes at SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_an_editor_begins_with_a_slash() {
        for (given, base) in
            [("", None), ("/", None), ("a/b/", Some("/a/b")), ("/vscode", Some("/vscode"))]
        {
            assert_eq!(as_base(given.into()).as_deref(), base, "{given:?}");
        }
    }

    #[test]
    fn the_quiet_limit_is_ten_seconds_by_default() {
        let command = ServeArguments::augment_args(clap::Command::new("serve"));
        let argument =
            command.get_arguments().find(|argument| argument.get_id() == "no_change_timeout");
        let argument = argument.unwrap();
        assert_eq!(argument.get_default_values(), ["10"]);
        assert_eq!(argument.get_env().unwrap(), "NO_CHANGE_TIMEOUT_SECONDS");
    }
}
