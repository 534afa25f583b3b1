//! Ways out of confinement, each tried by a hostile program, as an ordinary user and as root.
//!
//! This binary plays three roles. The test prepares a [`Stage`] and starts the binary again as the launcher, which
//! applies a policy and becomes the hostile program, again the same binary. The hostile program tries every way and
//! prints a line for each. The test compares these lines with the table of ways that are not kept, and fails if there
//! is another one. SECURITY.md repeats the table for readers.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "a hostile program makes system calls that no library offers")]
#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]
#![allow(clippy::print_stdout, reason = "the hostile program reports to the test")]

mod calls;
mod files;
mod machine;
mod processes;
mod sockets;
mod stage;

use std::collections::BTreeSet;

use sandbox_isolation::{Error, Features, Level, Limits, Network, Policy, Unavailable, require};
use stage::{Stage, User};

/// The result of an attempt: how the program got out, or what stopped it.
type Attempt = Result<String, String>;

/// A way out: its name, and the function that tries it.
type Way = (&'static str, fn(&Stage) -> Attempt);

/// Ways that confinement does not close. SECURITY.md gives the reasons.
const NOT_KEPT: &[&str] =
    &["change-mode", "change-owner", "change-times", "change-attributes", "lock-a-directory"];

/// Ways that only Landlock's scopes close (Linux 6.12).
const NEED_SCOPES: &[&str] =
    &["signal", "signal-a-thread", "signal-by-descriptor", "signal-with-a-value"];

/// Some ways that an unconfined program of any user has on every machine. They show that the attempts are real.
const OPEN_WITHOUT_WALLS: &[&str] = &[
    "tcp-connect",
    "udp-send",
    "listen-without-bind",
    "unix-socket",
    "abstract-unix-socket",
    "limits-of-others",
    "priority",
    "affinity",
    "scheduling",
    "signal",
    "write-a-file",
    "read-a-connection-file",
    "change-mode",
    "change-times",
];

fn all_ways() -> impl Iterator<Item = &'static Way> {
    [sockets::WAYS, processes::WAYS, files::WAYS, machine::WAYS].into_iter().flatten()
}

/// The features of Landlock here; `None`, with a note, if Linux has none.
fn landlock() -> Option<Features> {
    match require(Level::Landlock) {
        Ok(features) => Some(features),
        Err(Error::Unavailable { reason: Unavailable::NotInKernel, .. }) => {
            eprintln!("skipped: this Linux has no Landlock");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Not a test, but the launcher and the hostile program that the tests start.
#[test]
fn role() {
    stage::play_role();
}

/// Runs the hostile program, and returns the names of the ways by which it got out.
fn ways_found(stage: &Stage, policy: &Policy) -> BTreeSet<String> {
    let output = stage.run(policy);
    eprintln!("{output}");
    let results = output.lines().filter_map(|line| line.strip_prefix("way ")?.split_once(": "));
    let (mut tried, mut found) = (0, BTreeSet::new());
    for (name, result) in results {
        tried += 1;
        if result.starts_with("got out") {
            found.insert(name.to_owned());
        }
    }
    assert_eq!(tried, all_ways().count(), "not all ways were tried");
    found
}

fn walls_keep(user: User) {
    let Some(features) = landlock() else { return };
    if !user.can_be_played() {
        return;
    }
    let stage = Stage::new(user);
    let network = Network::default();
    let open = ways_found(&stage, &Policy { network, ..stage.policy(Level::None) });
    for way in OPEN_WITHOUT_WALLS {
        assert!(open.contains(*way), "an unconfined program must find {way}");
    }
    let limits = Limits { file_bytes: Some(1 << 30), ..Limits::default() };
    let walls =
        Policy { limits, network: "none".parse().unwrap(), ..stage.policy(Level::Landlock) };
    let mut found = ways_found(&stage, &walls);
    found.retain(|way| !NOT_KEPT.contains(&&**way));
    if !features.signals {
        found.retain(|way| !NEED_SCOPES.contains(&&**way));
    }
    assert!(found.is_empty(), "ways out: {found:?}");
}

#[test]
fn no_way_leads_out_for_an_ordinary_user() {
    walls_keep(User::Ordinary);
}

#[test]
fn no_way_leads_out_for_root() {
    walls_keep(User::Root);
}

/// Whatever network is chosen, there is nothing but plain TCP and UDP, and of these only what was chosen.
#[test]
fn only_chosen_sockets_lead_out() {
    let Some(Features { tcp: true, .. }) = landlock() else {
        eprintln!("skipped: this Linux cannot restrict TCP");
        return;
    };
    let stage = Stage::new(User::Ordinary);
    let port = stage.port;
    let connecting = ["tcp-connect", "fast-open-connect"];
    for (network, allowed) in [
        ("none".to_owned(), &[][..]),
        // Another port than the one that is attacked.
        ("1".to_owned(), &["netlink"]),
        ("udp".to_owned(), &["netlink", "udp-send"]),
        (port.to_string(), &["netlink", "tcp-connect", "fast-open-connect"]),
        // Linux gives a socket without an address a free port, without asking Landlock.
        ("listen:1".to_owned(), &["netlink", "listen-without-bind"]),
    ] {
        let walls = Policy { network: network.parse().unwrap(), ..stage.policy(Level::Landlock) };
        let mut found = ways_found(&stage, &walls);
        found.retain(|way| sockets::WAYS.iter().any(|(name, _)| name == way));
        let mut expected: BTreeSet<_> = allowed.iter().map(|&it| it.to_owned()).collect();
        if !found.contains(connecting[1]) {
            // The option is missing where fast open is switched off.
            expected.remove(connecting[1]);
        }
        assert_eq!(found, expected, "--network {network}");
    }
}
