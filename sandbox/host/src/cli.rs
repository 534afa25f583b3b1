//! The command line of the `sandbox` program.

use std::{
    env, io,
    io::Write as _,
    ops::Range,
    path::PathBuf,
    process::{self, ExitCode},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Parser, Subcommand};
use sandbox_isolation::{self as isolation, Features};
use sandbox_pages::{self as browser, Browser, CHROMIUM, Shown, ShownBy, Source};
use sandbox_shells::{
    Access, Colours, Config, Helper, Job, Key, Progress, Shell, ShellArguments, ShellId, ShellSpec,
    Shells, Wait, default_root, render,
};

/// Persistent shells for agents.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Says what this machine offers to sandboxes.
    Doctor,
    /// Works with shell sessions, which stay when this program ends.
    Shell {
        /// The state directory of the sessions.
        #[arg(long, default_value_os_t = default_root())]
        root: PathBuf,
        /// How long sessions live on without anybody using them, in seconds.
        #[arg(long, default_value_t = 3600)]
        lease: u64,
        /// What new sessions may do; their workspace is the current directory.
        #[command(flatten)]
        shells: ShellArguments,
        #[command(subcommand)]
        verb: Verb,
    },
    /// Prints the text and the links of a web page.
    Browse {
        /// How many seconds it may take.
        #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
        limit: f64,
        /// The Chromium that shows it; without it the page is fetched as it is.
        #[arg(long, value_name = "PROGRAM", default_value = CHROMIUM)]
        browser_program: PathBuf,
        /// Its address.
        url: String,
    },
    /// Show the page that a line of JSON asks for; started by the daemon
    #[command(hide = true)]
    ShowPage,
    #[command(flatten)]
    Helper(Helper),
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs a command and shows its output as it comes; ends with its exit code, or with 124 if it
    /// outlives the limit and goes on without us.
    Run {
        #[command(flatten)]
        wait: WaitArguments,
        /// The session; it is created in the current directory if it does not exist.
        session: ShellId,
        /// The text to run.
        command: String,
    },
    /// Waits for the running command of a session, and shows what it prints meanwhile.
    Wait {
        #[command(flatten)]
        wait: WaitArguments,
        /// The session.
        session: ShellId,
    },
    /// Lists the sessions.
    List,
    /// Shows what a session has printed, as a terminal would show it: all of it, or of more than 16 MiB
    /// both ends.
    Show {
        /// The session.
        session: ShellId,
        /// Keep colours.
        #[arg(long)]
        colours: bool,
    },
    /// Presses keys: C-c, UP, ENTER and so on.
    Press {
        /// The session.
        session: ShellId,
        /// The keys, one after the other.
        #[arg(required = true)]
        keys: Vec<Key>,
    },
    /// Types a text and the Enter key.
    Type {
        /// The session.
        session: ShellId,
        /// The text.
        text: String,
    },
    /// Prints the command with which a person can attach to a session.
    Attach {
        /// The session.
        session: ShellId,
        /// Watch only.
        #[arg(long)]
        read_only: bool,
    },
    /// Closes a session.
    Close {
        /// The session.
        session: ShellId,
    },
    /// Closes all sessions and ends the tmux server.
    End,
}

#[derive(Debug, Args)]
struct WaitArguments {
    /// Stop waiting after so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    limit: Option<Duration>,
    /// Stop waiting when nothing was printed for so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    quiet: Option<Duration>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Helper(helper) => {
            helper.run()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Doctor => doctor(),
        Command::Browse { limit, browser_program: chromium, url } => {
            block_on(browse(Browser { chromium, by: ShownBy::Us }, url, limit))
        }
        Command::ShowPage => match browser::answer_owner()? {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::FAILURE),
        },
        Command::Shell { root, lease, shells, verb } => {
            let lease = Duration::from_secs(lease);
            let cwd = env::current_dir().context("finding the current directory")?;
            let config = shells.config(&root, shells.policy(&cwd))?;
            block_on(shell(Config { lease, ..config }, verb))
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    number.ok_or_else(|| "not a number of seconds, 0 or more".to_owned())
}

fn block_on<T, E: Into<anyhow::Error>>(
    future: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(future).map_err(Into::into)
}

async fn browse(browser: Browser, url: String, limit: f64) -> anyhow::Result<ExitCode> {
    ensure!(
        url.starts_with("http://") || url.starts_with("https://"),
        "{url} is no web page: its address begins with http:// or https://"
    );
    let limit = Duration::try_from_secs_f64(limit).context("--limit")?;
    let Shown { text, error, .. } = browser.show(Source::Web(url), limit).await?;
    if let Some(error) = error {
        bail!("the page cannot be shown: {error}");
    }
    writeln!(io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

async fn shell(config: Config, verb: Verb) -> anyhow::Result<ExitCode> {
    let shells = Shells::open(config).await?;
    let find = |id: &ShellId| shells.get(id).with_context(|| format!("there is no session {id}"));
    match verb {
        Verb::Run { wait, session, command } => {
            let session = match shells.get(&session) {
                Some(session) => session,
                None => {
                    let cwd = env::current_dir().context("finding the current directory")?;
                    let spec = ShellSpec { id: session, ..ShellSpec::in_directory(cwd) };
                    shells.create(spec).await?
                }
            };
            let job = session.run(command).await?;
            return follow(&job, &wait).await;
        }
        Verb::Wait { wait, session } => {
            let job = find(&session)?.latest().context("no command was ever run there")?;
            return follow(&job, &wait).await;
        }
        Verb::List => {
            let mut out = io::stdout().lock();
            for session in shells.list() {
                let status = session.status();
                let (phase, cwd) = (status.phase, status.cwd.display());
                writeln!(out, "{}\t{phase:?}\t{}\t{cwd}", session.id(), status.shell.pid)?;
            }
        }
        Verb::Show { session, colours } => show(&find(&session)?, colours)?,
        Verb::Press { session, keys } => find(&session)?.press(keys).await?,
        Verb::Type { session, text } => find(&session)?.type_bytes(text + "\r").await?,
        Verb::Attach { session, read_only } => {
            let access = if read_only { Access::ReadOnly } else { Access::Full };
            writeln!(io::stdout(), "{}", find(&session)?.attach_command(access))?;
        }
        Verb::Close { session } => find(&session)?.close().await?,
        Verb::End => shells.shut_down().await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the output of a job as it comes, until it ends or the wait does.
async fn follow(job: &Job, arguments: &WaitArguments) -> anyhow::Result<ExitCode> {
    let wait = Wait { quiet: arguments.quiet, limit: arguments.limit, ..Wait::default() };
    let mut output = job.follow()?;
    let mut buffer = vec![0; 64 * 1024];
    let waiting = job.wait(wait);
    tokio::pin!(waiting);
    let progress = loop {
        tokio::select! {
            progress = &mut waiting => break progress?,
            read = output.next(&mut buffer) => match read? {
                0 => break waiting.await?,
                read => io::stdout().write_all(&buffer[..read])?,
            }
        }
    };
    let lost = match &progress {
        Progress::Finished(result) => result.lost,
        Progress::Running(running) => running.lost,
    };
    if lost > 0 {
        eprintln!(
            "sandbox: {lost} bytes of output were lost: the log of the session, or its disk, is full; close \
             the session to begin a new log"
        );
    }
    let code = match &progress {
        Progress::Finished(result) => loop {
            match output.next(&mut buffer).await? {
                0 => break result.exit_code,
                read => io::stdout().write_all(&buffer[..read])?,
            }
        },
        Progress::Running(_) => 124,
    };
    io::stdout().flush()?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(125)))
}

fn show(session: &Shell, colours: bool) -> anyhow::Result<()> {
    const BYTES: u64 = 16 << 20;
    let view = session.log().view(0..session.log().len()?, BYTES)?;
    let colours = if colours { Colours::Keep } else { Colours::Strip };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", render(&view.head, session.size(), colours))?;
    if !view.omitted.is_empty() {
        let Range { start, end } = view.omitted;
        writeln!(out, "[{} bytes left out: offsets {start} to {end} of the log]", end - start)?;
        writeln!(out, "{}", render(&view.tail, session.size(), colours))?;
    }
    Ok(())
}

fn doctor() -> anyhow::Result<ExitCode> {
    let mut healthy = true;
    let mut out = io::stdout().lock();
    for (program, flag) in [("tmux", "-V"), ("bash", "--version")] {
        let output = process::Command::new(program).arg(flag).output();
        let line = output.ok().filter(|output| output.status.success()).and_then(|output| {
            Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
        });
        healthy &= line.is_some();
        let line = line.unwrap_or_else(|| "missing; install it".into());
        writeln!(out, "{program}: {line}")?;
    }
    let shell = block_on(try_shell());
    healthy &= shell.is_ok();
    match shell {
        Ok(()) => writeln!(out, "a shell: starts")?,
        Err(error) => writeln!(out, "a shell: does not start: {error:#}")?,
    }
    for support in isolation::probe() {
        match support.works {
            Ok(features) => writeln!(out, "isolation {}: {}", support.level, describe(features))?,
            Err(reason) => writeln!(out, "isolation {}: unavailable: {reason}", support.level)?,
        }
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a shell where they usually are, and ends it.
async fn try_shell() -> anyhow::Result<()> {
    let root = default_root();
    let place = tempfile::Builder::new()
        .prefix("sandbox-")
        .tempdir_in(root.parent().context("the state directory has no parent")?)?;
    let shells = Shells::open(Config::of_this_program(place.path().join("probe"))?).await?;
    let started = shells.create(ShellSpec::default()).await;
    let ended = shells.shut_down().await;
    started?;
    Ok(ended?)
}

fn describe(features: Features) -> String {
    let Features { files, tcp, signals, unix_sockets } = features;
    let parts = [
        (files, "files"),
        (tcp, "TCP ports"),
        (unix_sockets, "Unix sockets"),
        (signals, "signals"),
    ];
    let enforced = parts.iter().filter_map(|(enforced, name)| enforced.then_some(*name));
    match enforced.collect::<Vec<_>>().as_slice() {
        [] => "restricts nothing".into(),
        names => format!("restricts {}", names.join(", ")),
    }
}
