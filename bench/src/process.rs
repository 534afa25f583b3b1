//! Processes under measurement: started by us, ended with us, their CPU time and memory read from the
//! kernel.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A server process. It is killed when dropped.
pub struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it; its stdin stays open as long as we live, and its stdout is ours to read.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        Ok(Self { child, stdout })
    }

    /// Gives it a line.
    pub fn write_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("stdin is piped")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    /// Its next line.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            bail!("the process ended before it said that it was ready");
        }
        Ok(line.trim_end().to_owned())
    }

    /// CPU time used so far.
    pub fn cpu(&self) -> Result<Duration> {
        cpu(self.child.id())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has.
    pub fn terminate(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.child.wait();
    }

    /// Closes its stdin, for programs that end by that, and waits until it has ended.
    pub fn hang_up(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }

    /// Memory that is resident now.
    pub fn resident_kib(&self) -> Result<f64> {
        resident_kib(self.child.id())
    }
}

/// CPU time that a process has used so far, by all threads, to the nanosecond.
pub fn cpu(pid: u32) -> Result<Duration> {
    let mut total = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let times = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        total += times.split(' ').next().context("schedstat is empty")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(total))
}

/// Memory of a process that is resident now.
pub fn resident_kib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.context("no VmRSS")?.trim().trim_end_matches(" kB").parse()?)
}

/// Descriptors that a process has open.
pub fn open_files(pid: u32) -> Result<f64> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as f64)
}

/// The processes that have this text among their arguments, and these.
pub fn with_argument(text: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        arguments.contains(text).then_some((pid, arguments))
    })
    .collect()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The optimised program of a package, built if necessary. By a cargo of its own, so that it has the
/// features that it ships with, and not those that our other arms ask for.
pub fn built(package: &str, program: &str) -> Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", package, "--bin", program])
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("{program} does not build");
    }
    let ours = std::env::current_exe()?;
    let target = ours.parent().and_then(Path::parent).context("we live in a target directory")?;
    Ok(target.join("release").join(program))
}

/// Does something on one core only, with everything that is started for it.
pub fn on_one_core<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let us = Pid::from_raw(0);
    let all = sched_getaffinity(us)?;
    let mut one = CpuSet::new();
    let first = (0..CpuSet::count()).find(|&core| all.is_set(core).unwrap_or(false));
    one.set(first.context("we may run on no core")?)?;
    sched_setaffinity(us, &one)?;
    let result = work();
    sched_setaffinity(us, &all)?;
    result
}

/// Sees to it that we, and what we start, may have so many descriptors.
pub fn allow_files(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if hard < wanted {
        bail!(
            "{wanted} open files are needed for so many clients, and at most {hard} are allowed: raise \
             the limit (`ulimit -Hn {wanted}` as root, or `LimitNOFILE`), or run another part"
        );
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard)?)
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench/ is below the root")
}

/// A command that runs another part of this program.
pub fn ourselves(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments);
    Ok(command)
}
