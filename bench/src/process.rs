//! Processes under measurement. They end with this program. CPU time and memory come from `/proc`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A server process. Dropping it kills the process.
pub struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a process. Its stdin stays open until this value is dropped; its stdout is read by
    /// [`line`](Self::line).
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

    /// Writes a line to the process's stdin.
    pub fn write_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("stdin is piped")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    /// Waits for the next line of the process's stdout.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            bail!("the process ended before it was ready");
        }
        Ok(line.trim_end().to_owned())
    }

    /// CPU time that the process has used so far.
    pub fn cpu(&self) -> Result<Duration> {
        cpu(self.child.id())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, and waits until the process has ended.
    pub fn terminate(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.child.wait();
    }

    /// Closes stdin, and waits until the process has ended. For programs that end at the end of their input.
    pub fn hang_up(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }

    /// Resident memory of the process now.
    pub fn resident_kib(&self) -> Result<f64> {
        resident_kib(self.child.id())
    }
}

/// CPU time that all threads of a process have used so far, in nanosecond resolution.
pub fn cpu(pid: u32) -> Result<Duration> {
    let mut total = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let times = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        total += times.split(' ').next().context("schedstat is empty")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(total))
}

/// Resident memory of a process now.
pub fn resident_kib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.context("no VmRSS")?.trim().trim_end_matches(" kB").parse()?)
}

/// Number of open file descriptors of a process.
pub fn open_files(pid: u32) -> Result<f64> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as f64)
}

/// Pid and arguments of all processes that have this text in their arguments.
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

/// Builds the optimised program of a package, and returns its path. Each package is built by a cargo of its
/// own, so that its dependencies have the features that it ships with, and not those that other arms enable.
pub fn built(package: &str, program: &str) -> Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", package, "--bin", program])
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("{program} does not build");
    }
    let ours = std::env::current_exe()?;
    let target = ours
        .parent()
        .and_then(Path::parent)
        .context("this program is not in a target directory")?;
    Ok(target.join("release").join(program))
}

/// Does the work on one core only, together with all processes that it starts.
pub fn on_one_core<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let us = Pid::from_raw(0);
    let all = sched_getaffinity(us)?;
    let mut one = CpuSet::new();
    let first = (0..CpuSet::count()).find(|&core| all.is_set(core).unwrap_or(false));
    one.set(first.context("the affinity mask allows no core")?)?;
    sched_setaffinity(us, &one)?;
    let result = work();
    sched_setaffinity(us, &all)?;
    result
}

/// Raises the limit on open file descriptors for this process and its children.
pub fn allow_files(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if hard < wanted {
        bail!(
            "the measurement needs {wanted} open files, but at most {hard} are allowed: raise the limit \
             (`ulimit -Hn {wanted}` as root, or `LimitNOFILE`), or run another part"
        );
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard)?)
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench/ is below the root")
}

/// A command that runs this program with other arguments.
pub fn ourselves(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments);
    Ok(command)
}
