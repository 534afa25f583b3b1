//! Isolation with Landlock.
//!
//! The ruleset names the kinds of access that it handles, and all handled access is forbidden unless a rule allows
//! it. We handle all ways of writing, reading and, if the policy says so, TCP. They are required: a Linux that
//! supports less is an error. The restriction of signals is used where it exists. What does not concern files is left
//! to a filter on system calls, and the privileges of root are dropped.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::reading::readable_paths;
use super::{Error, Features, Isolation, Level, Network, Policy, Unavailable};
use super::{capabilities, syscalls};

/// The first version that can restrict truncation.
const FILES: ABI = ABI::V3;
/// The first version that can restrict TCP.
const TCP: ABI = ABI::V4;
/// The first version that can restrict signals.
const SIGNALS: ABI = ABI::V6;

/// Devices that every shell and program expects to be writable. Shared memory (`/dev/shm`) is not among them: it is
/// shared with programs outside, and no limit counts it.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// The Linux security module.
#[derive(Debug)]
pub(super) struct Landlock;

impl Isolation for Landlock {
    fn level(&self) -> Level {
        Level::Landlock
    }

    /// Restricts a thread that ends right after, and checks that it can no longer write.
    fn probe(&self) -> Result<Features, Unavailable> {
        let failed = |reason: String| Unavailable::TrialFailed { reason };
        let trial = thread::Builder::new().name("landlock-probe".into()).spawn(try_landlock);
        let trial = trial.map_err(|error| failed(error.to_string()))?;
        trial.join().unwrap_or_else(|_| Err(failed("the trial panicked".into())))
    }

    fn enter(&self, policy: &Policy, command: Command) -> Result<Command, Error> {
        let features =
            self.probe().map_err(|reason| Error::Unavailable { level: self.level(), reason })?;
        if policy.network != Network::Unrestricted && !features.tcp {
            return Err(Error::NoTcpControl { level: self.level() });
        }
        let mut rules = rules(&policy.network).map_err(refused)?;
        for path in &policy.writable {
            let unusable = |reason| Error::Writable { path: path.clone(), reason };
            let handle = PathFd::new(path).map_err(|error| unusable(error.to_string()))?;
            rules = allow(rules, path, handle, writing() | AccessFs::ReadFile).map_err(refused)?;
        }
        let readable = readable_paths(&policy.unreadable);
        let devices = DEVICES.iter().map(PathBuf::from);
        let optional = devices
            .map(|path| (path, writing() | AccessFs::ReadFile))
            .chain(readable.into_iter().map(|path| (path, AccessFs::ReadFile.into())))
            .chain(policy.readable.iter().map(|path| (path.clone(), AccessFs::ReadFile.into())));
        for (path, access) in optional {
            // Containers lack some devices, and a file may be gone that a directory has listed.
            if let Ok(handle) = PathFd::new(&path) {
                rules = allow(rules, &path, handle, access).map_err(refused)?;
            }
        }
        let status = rules.restrict_self().map_err(refused)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(Error::Refused { reason: "the rules are not in force".into() });
        }
        capabilities::drop_for_ever(capabilities::all())
            .map_err(|error| Error::Privileges { source: error.into() })?;
        syscalls::restrict(&policy.network, policy.unix_sockets)
            .map_err(|reason| Error::Refused { reason })?;
        Ok(command)
    }
}

/// All ways of writing, without making devices: a device of root leads to all files.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(FILES) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
}

/// Creates rules that forbid all writing and reading, and allow TCP as the policy says.
fn rules(network: &Network) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(FILES) | AccessFs::ReadFile)?;
    if *network != Network::Unrestricted {
        rules = rules.handle_access(AccessNet::from_all(TCP))?;
    }
    let mut rules = rules
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(SIGNALS))?
        .set_compatibility(CompatLevel::HardRequirement)
        .create()?;
    if let Network::Only { connect, listen, .. } = network {
        for (ports, access) in [(connect, AccessNet::ConnectTcp), (listen, AccessNet::BindTcp)] {
            for port in ports {
                rules = rules.add_rule(NetPort::new(*port, access))?;
            }
        }
    }
    Ok(rules)
}

/// Allows access below a directory, or to a file.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    handle: PathFd,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(FILES) };
    rules.add_rule(PathBeneath::new(handle, access))
}

/// Tries Landlock. Runs in a thread of its own, because the thread stays restricted.
fn try_landlock() -> Result<Features, Unavailable> {
    let failed = |reason: &str| Unavailable::TrialFailed { reason: reason.to_owned() };
    let status = match rules(&Network::Unrestricted).and_then(RulesetCreated::restrict_self) {
        Ok(status) => status,
        Err(error) => return Err(explain(&error)),
    };
    let RestrictionStatus { landlock: LandlockStatus::Available { effective_abi, .. }, .. } =
        status
    else {
        return Err(Unavailable::NotInKernel);
    };
    // Every process may write to this device unless the rules forbid it.
    match OpenOptions::new().write(true).open("/dev/null") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return Err(Unavailable::TrialFailed { reason: error.to_string() }),
        Ok(_) => return Err(failed("writing was still possible")),
    }
    let no_network = Network::Only { connect: Vec::new(), listen: Vec::new(), udp: false };
    syscalls::restrict(&no_network, false).map_err(|reason| Unavailable::TrialFailed { reason })?;
    if UnixDatagram::unbound().is_ok() {
        return Err(failed("a Unix socket could still be created"));
    }
    let (tcp, signals) = (effective_abi >= TCP, effective_abi >= SIGNALS);
    Ok(Features { files: true, tcp, signals, unix_sockets: true })
}

/// Determines why the required rules could not be created. The library reports only which requirement failed, so this
/// tries again without requirements to see what Linux supports.
fn explain(error: &RulesetError) -> Unavailable {
    let best_effort = Ruleset::default()
        .handle_access(AccessFs::from_write(FILES))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    match best_effort.map(|status| status.landlock) {
        Ok(LandlockStatus::NotImplemented) => Unavailable::NotInKernel,
        Ok(LandlockStatus::NotEnabled) => Unavailable::Disabled,
        Ok(LandlockStatus::Available { effective_abi, .. }) if effective_abi < FILES => {
            Unavailable::TooOld
        }
        _ => Unavailable::TrialFailed { reason: error.to_string() },
    }
}

fn refused(error: RulesetError) -> Error {
    Error::Refused { reason: error.to_string() }
}
