use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// One step of a run: ordinary use, or a fault.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A client sends a few requests of all kinds.
    SendRequests,
    /// A client sends a few requests and cancels some of them.
    SendAndCancel,
    /// A client reads all answers. Until then it is a slow reader.
    Read,
    NewClient,
    /// A client disconnects while its requests are in flight.
    DropClient,
    /// A client shuts down its sending side and stays connected.
    HalfCloseClient,
    /// Several TCP connections are opened that send nothing.
    OpenIdleConnections,
    /// A client sends texts that are no messages.
    SendGarbage,
    StartHost,
    KillHost,
    /// A host is stopped by SIGSTOP until the next rest.
    StopHost,
    /// The daemon is stopped by SIGSTOP while a client sends a request.
    StopDaemon,
    KillDaemon,
    /// A connection file of another daemon is truncated.
    TruncateFile,
    /// A client process is stopped by SIGSTOP with a request in flight, and killed at the next rest.
    FreezeClient,
    /// A client's machine disappears: the daemon gets nothing from it any more, not even the end of the
    /// connection.
    VanishClient,
    /// A command runs in a shell.
    Run,
    /// A command waits for input, and the client that started it disconnects.
    LeaveCommand,
    /// A client subscribes to a flood of output and does not read it.
    StreamSlowly,
    /// A file of the workspace is written.
    UseFile,
    KillShell,
    KillRecorder,
    /// A recorder is stopped by SIGSTOP while its shell prints.
    StopRecorder,
    /// The tmux server is stopped by SIGSTOP while a command begins.
    StopTmux,
    KillTmux,
    /// The disk is full for a while.
    FillDisk,
    /// The daemon is killed while the disk is full. A new daemon cannot start before there is space.
    FillDiskAndKillDaemon,
    /// The daemon gets no more file descriptors for a while.
    ExhaustDescriptors,
    /// The daemon gets little more memory for a while. It may die because of that.
    LimitMemory,
    /// The daemon is killed, and one of its state files is truncated.
    TruncateState,
}

/// The relative frequency of each step.
const WEIGHTS: &[(Fault, u32)] = &[
    (Fault::SendRequests, 12),
    (Fault::SendAndCancel, 4),
    (Fault::Read, 6),
    (Fault::NewClient, 4),
    (Fault::DropClient, 3),
    (Fault::HalfCloseClient, 1),
    (Fault::OpenIdleConnections, 2),
    (Fault::SendGarbage, 2),
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
