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
    /// A connection file is cut short, as by a full disk.
    TruncateFile,
}

/// What happens, and how often compared with the rest.
const WEIGHTS: [(Fault, u32); 14] = [
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
];

impl Fault {
    pub fn choose(random: &mut StdRng) -> Self {
        WEIGHTS.choose_weighted(random, |(_, weight)| *weight).unwrap().0
    }
}
