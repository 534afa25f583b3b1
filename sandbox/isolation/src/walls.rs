//! The ways out that confinement closes on this machine, and those that it leaves open, for a report to people.

use super::Features;

/// One kind of way out, and whether confinement closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// The attempt of a confined program, in words.
    pub attempt: &'static str,
    /// Whether the attempt fails on this machine.
    pub holds: bool,
    /// The mechanism that prevents the attempt; or the reason why nothing does, and what helps.
    pub reason: &'static str,
}

/// The ways out that the level `landlock` closes, or leaves open, on a machine with these features.
pub fn walls(features: Features) -> Vec<Wall> {
    let wall = |holds: bool, attempt, kept, open| Wall {
        attempt,
        holds,
        reason: if holds { kept } else { open },
    };
    let Features { files, tcp, signals, unix_sockets } = features;
    vec![
        wall(files, "write files outside of the writable directories", "Landlock", "no Landlock"),
        wall(
            files,
            "read connection files, state and runtime directories, disks",
            "Landlock",
            "no Landlock",
        ),
        wall(
            tcp,
            "use other TCP ports than --network names",
            "Landlock",
            "needs Linux 6.7; --network is refused",
        ),
        wall(
            unix_sockets,
            "use Unix sockets, or other protocols than TCP and UDP",
            "system call filter",
            "no filter",
        ),
        wall(
            signals,
            "signal processes outside",
            "Landlock",
            "needs Linux 6.12: processes of the same user can be ended",
        ),
        wall(
            unix_sockets,
            "change limits, priority or scheduling of processes outside",
            "system call filter",
            "no filter",
        ),
        wall(files, "trace processes outside, or read their memory", "Landlock", "no Landlock"),
        wall(
            unix_sockets,
            "share memory, queues or keys with programs outside",
            "Landlock and system call filter",
            "no filter",
        ),
        wall(
            unix_sockets,
            "use privileges of root, namespaces, mounts, modules",
            "capabilities dropped, system call filter",
            "no filter",
        ),
        wall(
            false,
            "change modes, owners, times or attributes of the user's files outside",
            "",
            "Linux cannot restrict it by path: start as a user of its own, or in a container",
        ),
        wall(
            false,
            "lock directories, and files that they can read",
            "",
            "Linux asks only for a descriptor: start as a user of its own",
        ),
        wall(
            false,
            "read from and write to other terminals of the same user",
            "",
            "new terminals cannot be told from others: start as a user of its own",
        ),
        wall(
            false,
            "listen on a free port, if --network names a port to listen on",
            "",
            "Linux does not check a socket without an address: name no listen: port",
        ),
        wall(
            false,
            "use services of this machine on TCP ports that --network allows",
            "",
            "they look like any other address: name the ports that are needed",
        ),
        wall(
            false,
            "send UDP to any port, if --network allows UDP",
            "",
            "Linux cannot restrict UDP ports: leave out udp",
        ),
    ]
}
