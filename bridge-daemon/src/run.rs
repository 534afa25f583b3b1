//! `bridge-daemon run`: a daemon for one program, which ends with the program.
//!
//! The program stays in the daemon's process group, so the terminal's own signals (Ctrl-C, Ctrl-Z, a resized window)
//! reach it directly. They also reach the daemon, which ignores them. Signals that were sent to the daemon by `kill`
//! are passed on to the program. When the daemon is killed with SIGKILL, Linux ends the program. Processes that the
//! program has started are not ended, as under any shell.

use std::io;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bridge_protocol::env::no_proxy;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::config::{HostKind, RunArgs};
use crate::daemon::{Daemon, RunFacts};
use crate::orphans::end_with_us;
use crate::terminal_host::TerminalHost;

/// Exit code when the daemon could not start.
pub const CANNOT_START: u8 = 125;
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Runs the program and returns its exit code.
pub async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let expects_editor = args.host == HostKind::Editor;
    let name = args.program[0].to_string_lossy().into_owned();
    let facts =
        RunFacts { program: Some(name.clone()), wants_editor: expects_editor, rights: args.rights };
    // Before any file is written: a signal must not end the daemon before it can clean up.
    let signals = listen_for_signals()?;
    let daemon = Daemon::start(&args.bridge, args.bridge.host_wait(expects_editor), facts).await?;
    let mut host = JoinSet::new();
    if args.host == HostKind::Terminal {
        let terminal = TerminalHost::new(args.chat_command.clone(), args.allow_command.clone());
        host.spawn(terminal.attach(&daemon.hub));
    }
    let code = match start(&args, &daemon) {
        Ok(child) => exit_code(supervise(child, &daemon, signals, args.grace).await?),
        Err(error) => {
            eprintln!("bridge-daemon: cannot run {name}: {}", remedy(&error));
            match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => CANNOT_EXECUTE,
            }
        }
    };
    host.shutdown().await;
    daemon.stop().await;
    Ok(ExitCode::from(code))
}

fn start(args: &RunArgs, daemon: &Daemon) -> io::Result<Child> {
    let mut command = Command::new(&args.program[0]);
    command.args(&args.program[1..]).envs(daemon.variables()).stdin(Stdio::inherit());
    for name in ["no_proxy", "NO_PROXY"] {
        command.env(name, no_proxy(std::env::var(name).ok().as_deref()));
    }
    daemon.descriptors.restore_in(&mut command);
    end_with_us(&mut command);
    command.spawn()
}

async fn supervise(
    mut child: Child,
    daemon: &Daemon,
    mut signals: mpsc::UnboundedReceiver<Origin>,
    grace: Duration,
) -> io::Result<ExitStatus> {
    let hub = Arc::clone(&daemon.hub);
    let mut asked_to_end = false;
    let deadline = tokio::time::sleep(Duration::ZERO);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            status = child.wait() => return status,
            Some(origin) = signals.recv() => {
                let from_terminal = origin.cause == Cause::Kernel || origin.process.is_none();
                if from_terminal && matches!(origin.signal, SIGINT | SIGQUIT) {
                    continue; // The terminal has sent it to the program, too.
                }
                pass_on(&child, origin.signal);
                if matches!(origin.signal, SIGTERM | SIGHUP) && !asked_to_end {
                    asked_to_end = true;
                    deadline.as_mut().reset(tokio::time::Instant::now() + grace);
                }
            }
            () = hub.ended(), if !asked_to_end => {
                pass_on(&child, SIGTERM);
                asked_to_end = true;
                deadline.as_mut().reset(tokio::time::Instant::now() + grace);
            }
            () = &mut deadline, if asked_to_end => {
                eprintln!("bridge-daemon: the program did not end within {grace:?}: killing it");
                child.start_kill()?;
                return child.wait().await;
            }
        }
    }
}

fn pass_on(child: &Child, signal: i32) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // An error means that the program has already ended.
        let _ = kill_process(pid, signal);
    }
}

/// Receives signals with their origin, which tokio's own signals do not report.
fn listen_for_signals() -> io::Result<mpsc::UnboundedReceiver<Origin>> {
    let all = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];
    let mut signals = SignalsInfo::<WithOrigin>::new(all)?;
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for origin in signals.forever() {
            if sender.send(origin).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "not found: check its name, the PATH, and the working directory".into()
        }
        io::ErrorKind::PermissionDenied => {
            "not executable: check its permissions (chmod +x)".into()
        }
        _ => error.to_string(),
    }
}
