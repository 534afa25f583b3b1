//! The random steps of the model test.

use proptest::prelude::*;

pub const CLIENTS: u64 = 4;
/// Slots of hosts: two windows, two sandboxes of the daemon's own, and an edge.
pub const HOSTS: u64 = 5;
pub const WINDOWS: u64 = 2;
pub const EDGE: u64 = 4;
/// Runtime ids by slot.
pub const IDS: [&str; 5] = ["r0", "r1", "outer", "inner", "edge"];
/// Folders of the sandboxes.
pub const FOLDERS: [&str; 5] = ["", "", "/w", "/w/inner", ""];
pub const TOOLS: [&str; 3] = ["file/read", "file/write", "shell/run"];
/// Rights of clients by slot.
pub const RIGHTS: [&str; 4] =
    ["chat,read,write,run,editor", "chat", "read,run", "chat,read,write,run,editor"];
pub const METHODS: [&str; 5] =
    ["vscode/chat", "file/read", "file/write", "shell/run", "action/execute"];
pub const PATHS: [&str; 5] = ["/w", "/w/inner/x", "/w/innermost", "/elsewhere", "relative"];

#[derive(Clone, Debug)]
pub enum Step {
    ConnectClient(u64),
    ConnectHost(u64),
    CloseClient(u64),
    CloseHost(u64),
    Request {
        client: u64,
        bridge: bool,
        timeout: u16,
        method: &'static str,
        target: Target,
        size: u16,
    },
    Answer {
        host: u64,
        which: usize,
        fails: bool,
    },
    AnswerTwice {
        host: u64,
        which: usize,
    },
    Progress {
        host: u64,
        which: usize,
    },
    Cancel {
        client: u64,
        which: usize,
    },
    Started {
        client: u64,
        operation: u8,
    },
    Submit {
        host: u64,
        operation: u8,
    },
    Noise {
        client: u64,
    },
    Wait(u16),
    Flush,
    Update {
        host: u64,
        focused: bool,
    },
    SubmitFromOutside {
        operation: u8,
    },
    /// Connections that were asked to close are gone.
    FinishClosing,
}

/// What a request says about its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Any,
    Host(u64),
    Path(&'static str),
}

pub fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        2 => Just(Target::Any),
        1 => (0..HOSTS).prop_map(Target::Host),
        2 => prop::sample::select(&PATHS).prop_map(Target::Path),
    ]
}

pub fn method() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("vscode/chat"), prop::sample::select(&METHODS)]
}

pub fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    let host = 0..HOSTS;
    prop_oneof![
        2 => client.clone().prop_map(Step::ConnectClient),
        2 => host.clone().prop_map(Step::ConnectHost),
        1 => client.clone().prop_map(Step::CloseClient),
        1 => host.clone().prop_map(Step::CloseHost),
        12 => (client.clone(), any::<bool>(), 0..3000u16, method(), target(), 0..200u16)
            .prop_map(|(client, bridge, timeout, method, target, size)| Step::Request { client, bridge, timeout, method, target, size }),
        8 => (host.clone(), any::<usize>(), any::<bool>()).prop_map(|(host, which, fails)| Step::Answer { host, which, fails }),
        1 => (host.clone(), any::<usize>()).prop_map(|(host, which)| Step::AnswerTwice { host, which }),
        3 => (host.clone(), any::<usize>()).prop_map(|(host, which)| Step::Progress { host, which }),
        3 => (client.clone(), any::<usize>()).prop_map(|(client, which)| Step::Cancel { client, which }),
        1 => (client.clone(), 0..4u8).prop_map(|(client, operation)| Step::Started { client, operation }),
        1 => (host, 0..4u8).prop_map(|(host, operation)| Step::Submit { host, operation }),
        1 => client.prop_map(|client| Step::Noise { client }),
        3 => (0..2000u16).prop_map(Step::Wait),
        2 => Just(Step::Flush),
        1 => (0..HOSTS, any::<bool>()).prop_map(|(host, focused)| Step::Update { host, focused }),
        1 => (0..4u8).prop_map(|operation| Step::SubmitFromOutside { operation }),
        2 => Just(Step::FinishClosing),
    ]
}
