use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A client asks a few things, of all kinds.
    Ask,
    /// The same, and takes some of it back.
    AskAndCancel,
    /// A client reads what it has been sent. Until then it is a slow reader.
    Read,
    NewClient,
    /// A client vanishes with its questions open.
    DropClient,
    /// A client says that it will send no more, and stays.
    HalfCloseClient,
    /// Somebody connects and says nothing.
    Lurk,
    /// Somebody sends what is no message.
    Babble,
    StartHost,
    KillHost,
    /// A host is frozen, and thaws when everything comes to rest.
    StopHost,
    /// The daemon is frozen while a client asks.
    StopDaemon,
    KillDaemon,
    /// A connection file of another daemon is cut short.
    TruncateFile,
    /// A client process is frozen with questions open, and killed when everything comes to rest.
    FreezeClient,
    /// A client's machine is gone: nothing comes from there any more, not even the end of the connection.
    VanishClient,
    /// A command runs in a shell.
    Run,
    /// A command waits for input, and whoever started it leaves.
    LeaveCommand,
    /// Somebody follows a flood of output and does not read it.
    StreamSlowly,
    /// A file of the workspace is written.
    UseFile,
    KillShell,
    KillRecorder,
    /// A recorder is frozen while its shell prints.
    StopRecorder,
    /// The tmux server is frozen while a command begins.
    StopTmux,
    KillTmux,
    /// There is no room on the disk for a while.
    FillDisk,
    /// The daemon is killed while there is no room, and another cannot begin before there is.
    FillDiskAndKillDaemon,
    /// The daemon gets no more file descriptors for a while.
    ExhaustDescriptors,
    /// The daemon gets little more memory for a while. It may die of that.
    LimitMemory,
    /// The daemon is killed, and one of its files is cut short.
    TruncateState,
}

/// What happens, and how often compared with the rest.
const WEIGHTS: &[(Fault, u32)] = &[
    (Fault::Ask, 12),
    (Fault::AskAndCancel, 4),
    (Fault::Read, 6),
    (Fault::NewClient, 4),
    (Fault::DropClient, 3),
    (Fault::HalfCloseClient, 1),
    (Fault::Lurk, 2),
    (Fault::Babble, 2),
    (Fault::StartHost, 3),
    (Fault::KillHost, 2),
    (Fault::StopHost, 1),
    (Fault::StopDaemon, 2),
    (Fault::KillDaemon, 1),
    (Fault::TruncateFile, 1),
    (Fault::FreezeClient, 1),
    (Fault::VanishClient, 2),
    (Fault::Run, 8),
    (Fault::LeaveCommand, 4),
    (Fault::StreamSlowly, 2),
    (Fault::UseFile, 2),
    (Fault::KillShell, 2),
    (Fault::KillRecorder, 2),
    (Fault::StopRecorder, 2),
    (Fault::StopTmux, 2),
    (Fault::KillTmux, 1),
    (Fault::FillDisk, 2),
    (Fault::FillDiskAndKillDaemon, 1),
    (Fault::ExhaustDescriptors, 2),
    (Fault::LimitMemory, 1),
    (Fault::TruncateState, 3),
];

impl Fault {
    pub fn choose(random: &mut StdRng) -> Self {
        WEIGHTS.choose_weighted(random, |(_, weight)| *weight).unwrap().0
    }
}
