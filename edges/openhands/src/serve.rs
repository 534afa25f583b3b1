//! `openhands-edge serve`: flags and variables, as given and as meant.

use std::{
    env, fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use openhands_edge::action::{KernelSettings, Settings};
use openhands_edge::action_server::{self, Access, EditorSettings, Plugins, WithoutKey};
use rustix::fs as system_files;
use sandbox_files::Workspace;
use sandbox_isolation::{Level, Network, Policy};
use sandbox_pages::{Browser, CHROMIUM, ShownBy};
use sandbox_shells::{Config, ShellArguments, ShellId, default_root};
use sha2::{Digest as _, Sha256};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{first_process, user::Wish};

/// The variable with the key that clients must show. Not a flag: arguments can be seen by everybody.
const KEY_VARIABLE: &str = "SESSION_API_KEY";

/// The flags are those of OpenHands' server, so that its clients can start this one instead, and a few
/// more.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The port; 0 for any.
    port: u16,
    /// The directory in which the shell starts; it is created if it is missing.
    #[arg(long, default_value = ".")]
    working_dir: PathBuf,
    /// Features to serve.
    #[arg(long, num_args = 0.., value_enum)]
    plugins: Vec<Plugin>,
    /// The user whose shells, cells and files these are. If root starts the server, it becomes that user,
    /// who is made if there is none, unless SU_TO_USER is false. RUNTIME_USERNAME overrides this.
    /// [default: the current user]
    #[arg(long)]
    username: Option<String>,
    /// The number of a user that is made; RUNTIME_UID overrides this. [default: the next one]
    #[arg(long)]
    user_id: Option<u32>,
    /// Show web pages. This is the default.
    #[arg(long)]
    enable_browser: bool,
    /// Show no web pages.
    #[arg(long, overrides_with = "enable_browser")]
    no_enable_browser: bool,
    /// The Chromium that shows them; without it they are fetched as they are.
    #[arg(long, value_name = "PROGRAM", default_value = CHROMIUM)]
    browser_program: PathBuf,
    /// Accepted for compatibility.
    #[arg(long)]
    browsergym_eval_env: Option<String>,
    /// Seconds of silence after which a command is no longer waited for.
    #[arg(long, env = "NO_CHANGE_TIMEOUT_SECONDS", default_value_t = 10)]
    no_change_timeout: u64,
    /// The address to listen on. Any but a loopback address needs SESSION_API_KEY, or --without-key.
    #[arg(long, env = "SANDBOX_HOST", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Serve another address than a loopback one without SESSION_API_KEY. Everybody who can reach the port
    /// can then run commands as the user of the server, and read and write that user's files. It is for
    /// a container whose port only its owner reaches, and for clients that show no key, such as OpenHands'
    /// DockerRuntime. Where SESSION_API_KEY is set, it is asked for nevertheless.
    #[arg(long)]
    without_key: bool,
    /// Keep file actions, uploads and downloads inside the working directory. Commands are not kept: that
    /// takes --require, which implies this.
    #[arg(long)]
    confine: bool,
    /// What commands may do; their workspace is the working directory.
    #[command(flatten)]
    shells: ShellArguments,
    /// Where the state of the shells lies. A server that is started again with the same directory goes on
    /// with the shell that a killed one has left. [default: one per port, user and working directory]
    #[arg(long)]
    state: Option<PathBuf>,
    /// The Python for run_ipython; it must have ipykernel. [default: the first on the PATH that has it]
    #[arg(long, value_name = "PROGRAM")]
    kernel_python: Option<PathBuf>,
    /// The editor's server program, for the vscode plugin; VSCODE_PORT is its port.
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "/openhands/.openvscode-server/bin/openvscode-server"
    )]
    vscode_server: PathBuf,
    /// Add a trace to error observations. OpenHands' own clients cannot read these.
    #[arg(long)]
    debug: bool,
}

/// What OpenHands calls plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Plugin {
    /// A kernel for `run_ipython`.
    Jupyter,
    /// `file_editor` in the cells of that kernel.
    AgentSkills,
    /// An editor in the browser.
    Vscode,
}

pub(crate) fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    if first_process::is_this() {
        return first_process::run_as_child().context("starting the server itself");
    }
    let without_key = if arguments.without_key { WithoutKey::Everybody } else { WithoutKey::Local };
    let access = Access::new(&env::var(KEY_VARIABLE).unwrap_or_default(), without_key);
    ensure!(
        arguments.host.is_loopback() || access.is_for_others(),
        "{} can be reached by others: set {KEY_VARIABLE} to a secret that clients must show, or listen on \
         127.0.0.1",
        arguments.host
    );
    let wish = Wish::new(arguments.username.clone(), arguments.user_id)?;
    wish.fulfil(&arguments.working_dir)?;
    fs::create_dir_all(&arguments.working_dir)
        .with_context(|| format!("making {}", arguments.working_dir.display()))?;
    let cwd = arguments.working_dir.canonicalize().context("finding the working directory")?;
    system_files::access(&cwd, system_files::Access::EXEC_OK).with_context(|| {
        format!("entering {}: name a --working-dir of this user's", cwd.display())
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = SocketAddr::new(arguments.host, arguments.port);
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
        let address = listener.local_addr()?;
        let name = shell_name(wish.name);
        let state = match &arguments.state {
            Some(state) => state.clone(),
            None => default_root().with_file_name(state_name(address.port(), &name, &cwd)),
        };
        let shells = arguments.shells.config(&state, arguments.shells.policy(&cwd))?;
        let actions = settings(&arguments, &cwd, &name, &shells)?;
        eprintln!("openhands-edge: serving {} on http://{address}", cwd.display());
        let plugins = Plugins {
            jupyter: arguments.plugins.contains(&Plugin::Jupyter),
            editor: editor(&arguments, &cwd, &shells.root, &shells.policy),
        };
        let traces = arguments.debug;
        let config = action_server::Config { shells, actions, access, traces, plugins };
        action_server::serve(config, listener, ended()?).await?;
        anyhow::Ok(ExitCode::SUCCESS)
    })
}

/// A free shell that a killed server has left is none for a server that confines, nor is one with other
/// limits.
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

/// What of a user's name can be in the name of a shell.
fn shell_name(username: Option<String>) -> String {
    let username = username.or_else(|| env::var("USER").ok()).unwrap_or_else(|| "user".into());
    username.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-")
}

fn settings(
    arguments: &ServeArguments,
    cwd: &Path,
    name: &str,
    shells: &Config,
) -> anyhow::Result<Settings> {
    // Walls around commands would be worth nothing beside file actions without.
    let workspace = match arguments.confine || shells.require > Level::None {
        true => Workspace::confined(cwd)?,
        false => Workspace::whole_file_system(),
    };
    let has = |plugin| arguments.plugins.contains(&plugin);
    Ok(Settings {
        bash: shells.bash.clone(),
        main: main_shell(name, &shells.policy).parse::<ShellId>()?,
        cwd: cwd.to_owned(),
        environment: Vec::new(),
        quiet: Duration::from_secs(arguments.no_change_timeout),
        workspace,
        // Pages would be a way around the walls of the network.
        browser: (!arguments.no_enable_browser && shells.policy.network == Network::Unrestricted)
            .then(|| Browser { chromium: arguments.browser_program.clone(), by: ShownBy::Us }),
        kernel: has(Plugin::Jupyter).then(|| KernelSettings {
            python: arguments.kernel_python.clone(),
            confinement: shells.confinement(),
            editor: has(Plugin::AgentSkills).then(|| shells.program.clone()),
            // Clients of OpenHands have no words for it.
            restart_stuck: true,
        }),
    })
}

/// The editor, if it is asked for, has a port and is installed.
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
            "openhands-edge: no editor is started, since its terminals would have no walls and no limits"
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

/// A path as the editor wants it: with a slash before it and none behind it. None if there is nothing between.
fn as_base(path: String) -> Option<String> {
    let names = path.trim_matches([' ', '/']);
    (!names.is_empty()).then(|| format!("/{names}"))
}

/// Different servers must not find one another's shells.
fn state_name(port: u16, username: &str, cwd: &Path) -> String {
    let digest = Sha256::digest(format!("{username}\n{}", cwd.display()));
    format!(
        "sandbox-serve-{}-{port}-{:02x}{:02x}{:02x}{:02x}",
        rustix::process::getuid().as_raw(),
        digest[0],
        digest[1],
        digest[2],
        digest[3]
    )
}

/// Comes when somebody asks the program to end.
fn ended() -> anyhow::Result<impl Future<Output = ()>> {
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
    fn silence_is_ten_seconds_unless_somebody_says_otherwise() {
        let command = ServeArguments::augment_args(clap::Command::new("serve"));
        let argument =
            command.get_arguments().find(|argument| argument.get_id() == "no_change_timeout");
        let argument = argument.unwrap();
        assert_eq!(argument.get_default_values(), ["10"]);
        assert_eq!(argument.get_env().unwrap(), "NO_CHANGE_TIMEOUT_SECONDS");
    }
}
