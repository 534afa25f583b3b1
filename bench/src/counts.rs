//! Counts the instructions of hot paths with valgrind. These figures do not depend on the load of the machine.

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bridge_daemon::broker::{Broker, Effect, Event, Grant, HostGrant, HostWait, Limits, PeerId};
use bridge_protocol::methods::RegisterParams;
use bridge_protocol::{Dialect, Message, Rights, SessionId};
use clap::{Args, ValueEnum};

use crate::Run;
use crate::framing::{Framing, payload};
use crate::process::ourselves;
use crate::report::Figure;

/// Two runs of different length are subtracted, so that the instructions of start and end cancel out.
const FEW: u32 = 500;
const MANY: u32 = 2500;

#[derive(Args)]
pub struct Repeat {
    path: HotPath,
    times: u32,
    bytes: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum HotPath {
    /// Parses a request.
    Parse,
    /// Takes a request through the broker to the host, and its answer back.
    Broker,
}

pub fn measure(run: &mut Run) -> Result<()> {
    let report = &mut run.report;
    if Command::new("valgrind").arg("--version").output().is_err() {
        report.note("instructions are not counted: valgrind is not installed".to_owned());
        return Ok(());
    }
    for (path, name) in
        [("parse", "parse a request"), ("broker", "request and answer through the broker")]
    {
        for (size, bytes) in [("200 B", 200), ("64 KiB", 64 * 1024)] {
            let difference = instructions(path, MANY, bytes)? - instructions(path, FEW, bytes)?;
            let each = difference as f64 / f64::from(MANY - FEW);
            let figure = Figure::new(&format!("{name}, {size}"), Some(&vec![each]));
            report.add("Instructions (callgrind)", figure);
        }
    }
    Ok(())
}

fn instructions(path: &str, times: u32, bytes: usize) -> Result<u64> {
    let repeat = ourselves(&["repeat", path, &times.to_string(), &bytes.to_string()])?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(repeat.get_program())
        .args(repeat.get_args())
        .output()?;
    let summary = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {summary}");
    let count = summary.lines().find_map(|line| line.split("Collected :").nth(1));
    Ok(count.context("valgrind counted nothing")?.trim().parse()?)
}

pub fn repeat(Repeat { path, times, bytes }: &Repeat) {
    let text = Framing::JsonRpc("vscode/chat").request(7, &payload(*bytes));
    match path {
        HotPath::Parse => {
            for _ in 0..*times {
                black_box(Message::parse(black_box(&text))).expect("the request is well-formed");
            }
        }
        HotPath::Broker => {
            let mut exchange = Exchange::new();
            for _ in 0..*times {
                exchange.round_trip(black_box(&text));
            }
        }
    }
}

/// A broker with one client and one host.
struct Exchange {
    broker: Broker,
    now: Instant,
}

impl Exchange {
    const CLIENT: PeerId = PeerId(1);
    const HOST: PeerId = PeerId(2);

    fn new() -> Self {
        let session: SessionId = "bench".parse().expect("the name is well-formed");
        let mut broker = Broker::new(session, Limits::default(), HostWait::UntilDeadline);
        let now = Instant::now();
        let host = Grant::Host(HostGrant::general([], &[]).into());
        for (peer, grant) in [(Self::CLIENT, Grant::Client(Rights::ALL)), (Self::HOST, host)] {
            broker.handle(Event::Connected { peer, grant, dialect: Dialect::JsonRpc }, now);
        }
        let registration = RegisterParams {
            title: "bench".to_owned(),
            methods: vec!["vscode/chat".to_owned()],
            ..RegisterParams::default()
        };
        broker.register(Self::HOST, registration, now).expect("the registration is well-formed");
        broker.take_effects();
        Self { broker, now }
    }

    fn round_trip(&mut self, request: &str) {
        let forwarded = self.deliver(Self::CLIENT, request, Self::HOST);
        let Ok(Message::Request(request)) = Message::parse(&forwarded) else {
            panic!("the host got no request");
        };
        let params = request.params.expect("the request has params");
        let answer = bridge_protocol::print::success(Dialect::JsonRpc, &request.id, params);
        black_box(self.deliver(Self::HOST, &answer, Self::CLIENT));
    }

    /// Gives the broker a message, and returns the message that the other side gets.
    fn deliver(&mut self, from: PeerId, text: &str, to: PeerId) -> String {
        let effects = self.broker.handle(Event::Message { peer: from, text }, self.now);
        let sent = effects.into_iter().find_map(|effect| match effect {
            Effect::Send { peer, text } if peer == to => Some(text),
            _ => None,
        });
        let sent = sent.expect("the message goes to the other side");
        let (messages, bytes) = (1, sent.len());
        self.broker.handle(Event::Sent { peer: to, messages, bytes }, self.now);
        sent
    }
}
