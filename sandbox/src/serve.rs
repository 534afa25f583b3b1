//! `sandbox serve`: flags and variables, as given and as meant.

use std::{
    env, fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use sandbox::{
    action::{BrowserSettings, KernelSettings, Settings},
    files::Workspace,
    openhands::{self, Access, EditorSettings, Plugins, Traces},
    shell::{Config, SessionId},
};
use sha2::{Digest as _, Sha256};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::cli::{block_on, default_root};

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
    /// A part of the main shell's name; the server runs as whoever starts it. [default: the current user]
    #[arg(long, env = "RUNTIME_USERNAME")]
    username: Option<String>,
    /// Show web pages. This is the default.
    #[arg(long)]
    enable_browser: bool,
    /// Show no web pages.
    #[arg(long, overrides_with = "enable_browser")]
    no_enable_browser: bool,
    /// The Chromium that shows them; without it they are fetched as they are.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/bin/chromium")]
    browser_program: PathBuf,
    /// Accepted for compatibility.
    #[arg(long)]
    browsergym_eval_env: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, env = "RUNTIME_UID")]
    user_id: Option<u32>,
    /// Seconds of silence after which a command is no longer waited for.
    #[arg(long, env = "NO_CHANGE_TIMEOUT_SECONDS", default_value_t = 10)]
    no_change_timeout: u64,
    /// The address to listen on. Any but a loopback address needs SESSION_API_KEY.
    #[arg(long, env = "SANDBOX_HOST", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Keep file actions, uploads and downloads inside the working directory. Commands are not kept.
    #[arg(long)]
    confine: bool,
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
    /// Accepted for compatibility.
    AgentSkills,
    /// An editor in the browser.
    Vscode,
}

pub(crate) fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    let access = Access::new(&env::var(KEY_VARIABLE).unwrap_or_default());
    ensure!(
        arguments.host.is_loopback() || access.has_key(),
        "{} can be reached by others: set {KEY_VARIABLE} to a secret that clients must show, or listen on \
         127.0.0.1",
        arguments.host
    );
    fs::create_dir_all(&arguments.working_dir)
        .with_context(|| format!("making {}", arguments.working_dir.display()))?;
    let cwd = arguments.working_dir.canonicalize().context("finding the working directory")?;
    let traces = if arguments.debug { Traces::Shown } else { Traces::Hidden };
    block_on(async {
        let address = SocketAddr::new(arguments.host, arguments.port);
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
        let address = listener.local_addr()?;
        let actions = settings(&arguments, &cwd, address.port())?;
        eprintln!("sandbox: serving {} on http://{address}", cwd.display());
        let plugins = Plugins {
            jupyter: arguments.plugins.contains(&Plugin::Jupyter),
            editor: editor(&arguments, &cwd, &actions.shells.root),
        };
        let config = openhands::Config { actions, access, traces, plugins };
        openhands::serve(config, listener, ended()?).await?;
        anyhow::Ok(ExitCode::SUCCESS)
    })
}

fn settings(arguments: &ServeArguments, cwd: &Path, port: u16) -> anyhow::Result<Settings> {
    let username = match &arguments.username {
        Some(name) => name.clone(),
        None => env::var("USER").unwrap_or_else(|_| "user".into()),
    };
    let name = username.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
    let state = match &arguments.state {
        Some(state) => state.clone(),
        None => default_root().with_file_name(state_name(port, &name, cwd)),
    };
    let workspace = match arguments.confine {
        true => Workspace::confined(cwd)?,
        false => Workspace::whole_file_system(),
    };
    Ok(Settings {
        shells: Config::of_this_program(state)?,
        main: format!("openhands-{name:.40}").parse::<SessionId>()?,
        cwd: cwd.to_owned(),
        environment: Vec::new(),
        quiet: Duration::from_secs(arguments.no_change_timeout),
        workspace,
        browser: match arguments.browser_program.exists() {
            _ if arguments.no_enable_browser => BrowserSettings::None,
            true => BrowserSettings::Chromium(arguments.browser_program.clone()),
            false => BrowserSettings::Fetch,
        },
        kernel: match arguments.plugins.contains(&Plugin::Jupyter) {
            true => KernelSettings::Python(arguments.kernel_python.clone()),
            false => KernelSettings::None,
        },
    })
}

/// The editor, if it is asked for, has a port and is installed.
fn editor(arguments: &ServeArguments, cwd: &Path, state: &Path) -> Option<EditorSettings> {
    let port = env::var("VSCODE_PORT").ok()?.parse().ok()?;
    let wanted = arguments.plugins.contains(&Plugin::Vscode) && arguments.vscode_server.exists();
    let base_path = env::var("OPENVSCODE_SERVER_BASE_PATH").ok().or_else(|| {
        let (id, url) = (env::var("RUNTIME_ID").ok()?, env::var("RUNTIME_URL").ok()?);
        let path = url.split_once("://").map_or(&*url, |(_, rest)| rest).split_once('/')?.1;
        path.starts_with(&id).then(|| format!("/{id}/vscode"))
    });
    let folder = env::var_os("WORKSPACE_MOUNT_PATH_IN_SANDBOX").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_dir()).unwrap_or_else(|| cwd.to_owned());
    let program = arguments.vscode_server.clone();
    wanted.then(|| EditorSettings { program, port, folder, base_path, state: state.to_owned() })
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
