//! Isolation by Landlock.
//!
//! The rules name what is handled, and everything handled is forbidden unless a rule allows it.
//! We handle all ways of writing and, if the policy says so, TCP. Both are demanded: a kernel that
//! knows less is an error. That nobody outside can be signalled is taken where it exists. What is
//! no matter of files is left to a filter on system calls.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::thread;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::calls;
use super::{Error, Features, Isolation, Level, Network, Policy, Unavailable};

/// The first version that can restrict truncation.
const FILES: ABI = ABI::V3;
/// The first version that can restrict TCP.
const TCP: ABI = ABI::V4;
/// The first version that can restrict signals.
const SIGNALS: ABI = ABI::V6;

/// What shells and programs write to without asking. Shared memory counts as temporary files.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/shm",
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

    /// Restricts a thread that ends right after, and looks whether it still can write.
    fn probe(&self) -> Result<Features, Unavailable> {
        let failed = |reason: String| Unavailable::TrialFailed { reason };
        let trial = thread::Builder::new().name("landlock-probe".into()).spawn(try_it);
        let trial = trial.map_err(|error| failed(error.to_string()))?;
        trial.join().unwrap_or_else(|_| Err(failed("the trial panicked".into())))
    }

    fn always_writable(&self) -> &'static [&'static str] {
        DEVICES
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
            rules = allow(rules, path, handle).map_err(refused)?;
        }
        for device in self.always_writable().iter().map(Path::new) {
            // Containers lack some of them.
            if let Ok(handle) = PathFd::new(device) {
                rules = allow(rules, device, handle).map_err(refused)?;
            }
        }
        let status = rules.restrict_self().map_err(refused)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(Error::Refused { reason: "the rules are not in force".into() });
        }
        calls::forbid(policy.unix_sockets).map_err(|reason| Error::Refused { reason })?;
        Ok(command)
    }
}

/// Rules that allow no writing at all, and of TCP what the policy says.
fn rules(network: &Network) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(FILES))?;
    if *network != Network::Unrestricted {
        rules = rules.handle_access(AccessNet::from_all(TCP))?;
    }
    let mut rules = rules
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(SIGNALS))?
        .set_compatibility(CompatLevel::HardRequirement)
        .create()?;
    if let Network::Tcp { connect, listen } = network {
        for (ports, access) in [(connect, AccessNet::ConnectTcp), (listen, AccessNet::BindTcp)] {
            for port in ports {
                rules = rules.add_rule(NetPort::new(*port, access))?;
            }
        }
    }
    Ok(rules)
}

/// Allows writing below a directory, or to a file.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    handle: PathFd,
) -> Result<RulesetCreated, RulesetError> {
    let access = match path.is_dir() {
        true => AccessFs::from_write(FILES),
        false => AccessFs::from_write(FILES) & AccessFs::from_file(FILES),
    };
    rules.add_rule(PathBeneath::new(handle, access))
}

/// Runs in a thread of its own, which is restricted afterwards.
fn try_it() -> Result<Features, Unavailable> {
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
    // Anybody may write to this device, unless the rules forbid it.
    match OpenOptions::new().write(true).open("/dev/null") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return Err(Unavailable::TrialFailed { reason: error.to_string() }),
        Ok(_) => return Err(failed("writing was possible nevertheless")),
    }
    calls::forbid(false).map_err(|reason| Unavailable::TrialFailed { reason })?;
    if UnixDatagram::unbound().is_ok() {
        return Err(failed("a Unix socket was possible nevertheless"));
    }
    let (tcp, signals) = (effective_abi >= TCP, effective_abi >= SIGNALS);
    Ok(Features { files: true, tcp, signals, unix_sockets: true })
}

/// Why the demanded rules could not be made. The library says only which demand failed, so what
/// the kernel has is found by demanding nothing.
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
