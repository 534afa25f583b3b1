//! The broker's own errors: each says what happened, and what the caller can do about it.

use std::time::{Duration, Instant};

use bridge_protocol::answer::unknown_method;
use bridge_protocol::text::brief;
use bridge_protocol::{ErrorKind, WireError};
use serde_json::{Map, Value, json};

use super::Broker;
use super::choice::Choice;
use super::grant::family_of;
use super::pending::Pending;
use super::runtimes::Runtime;

/// Advice for callers when no window is attached.
const HOW_TO_ATTACH: &str = "open the run in VS Code with the Run Bridge extension, or start it with \
                             `bridge-daemon run --host terminal`";

/// Advice for callers when no sandbox is attached.
const HOW_TO_GET_A_SANDBOX: &str = "start the daemon with `--sandbox DIR` to let its clients run \
                                    commands and change files there";

/// Advice for callers when no edge serves actions.
const HOW_TO_GET_THE_EDGE: &str = "install the program `openhands-edge` beside `bridge-daemon` or on the PATH, and \
                                   start the daemon with `--sandbox DIR`";

/// How many runtimes a message names at most. `data` has all of them.
const NAMED: usize = 8;

impl Broker {
    /// The error for a request that goes to no host.
    pub(super) fn not_routed(&self, method: &str, choice: &Choice) -> WireError {
        match choice {
            Choice::NoSuchRuntime(id) => {
                let id = brief(id);
                let reason =
                    format!("no runtime {id:?} is attached: `runtime/list` shows those that are");
                self.unavailable(reason, Some(method))
            }
            Choice::NoSuchFolder(path) => {
                let reason = format!(
                    "{:?} is in no folder of a runtime that serves {method}: choose one with params.runtimeId: {}",
                    brief(path),
                    sentence(self.serving(method))
                );
                self.unavailable(reason, Some(method))
            }
            Choice::Ambiguous(ids) => self.ambiguous(method, ids),
            // Callers pass neither `Host` nor `Wait`.
            Choice::Host(_) | Choice::Wait | Choice::NotServed => self.not_served(method),
        }
    }

    fn not_served(&self, method: &str) -> WireError {
        let family = family_of(method);
        let somebody = self
            .runtimes
            .iter()
            .any(|runtime| runtime.offer.methods.iter().any(|served| family_of(served) == family));
        let advice = match family {
            Some("shell" | "file" | "cell" | "page") if !somebody => HOW_TO_GET_A_SANDBOX,
            Some("action") if !somebody => HOW_TO_GET_THE_EDGE,
            _ => return unknown_method(method),
        };
        let reason = format!("no runtime serves {}: {advice}", brief(method));
        ErrorKind::MethodNotFound.error(reason)
    }

    /// The error for a request whose wait for a host has ended without one.
    pub(super) fn nobody_came(&self, method: &str, waited: Duration) -> WireError {
        let remedy = match family_of(method) {
            Some("vscode") => HOW_TO_ATTACH,
            _ => {
                "the runtime that served it went away; `bridge-client status` shows which are attached"
            }
        };
        let seconds = waited.as_secs_f64();
        let reason = format!("no host came to answer {method} within {seconds:.1} s: {remedy}");
        self.unavailable(reason, Some(method))
    }

    /// A *HostUnavailable* error whose `data` lists the runtimes that could be named instead: those that serve
    /// the method, or all.
    pub(super) fn unavailable(&self, reason: String, method: Option<&str>) -> WireError {
        let fits = |runtime: &&Runtime| method.is_none_or(|method| runtime.offer.serves(method));
        let facts = facts(self.runtimes.iter().filter(fits));
        ErrorKind::HostUnavailable.error_with(reason, facts)
    }

    fn ambiguous(&self, method: &str, ids: &[String]) -> WireError {
        let fits = |runtime: &&Runtime| ids.contains(&runtime.offer.id);
        let mut facts = facts(self.runtimes.iter().filter(fits));
        // Also those that the daemon is restarting, which `facts` does not know.
        facts.insert("runtimes".to_owned(), json!(ids));
        let what = match family_of(method) {
            Some("vscode") => format!("several windows could run {method} and none had the focus"),
            _ => format!("several runtimes serve {method}"),
        };
        let reason = format!(
            "{what}: choose one with params.runtimeId or params.path: {}",
            sentence(self.runtimes.iter().filter(fits))
        );
        ErrorKind::AmbiguousRuntime.error_with(reason, facts)
    }

    fn serving(&self, method: &str) -> impl Iterator<Item = &Runtime> {
        self.runtimes.iter().filter(move |runtime| runtime.offer.serves(method))
    }
}

/// A description of runtimes for programs: their ids, titles and folders.
fn facts<'a>(runtimes: impl Iterator<Item = &'a Runtime>) -> Map<String, Value> {
    let runtimes: Vec<_> = runtimes.collect();
    let ids: Vec<_> = runtimes.iter().map(|runtime| &runtime.offer.id).collect();
    let candidates: Vec<_> = runtimes
        .iter()
        .map(|runtime| {
            json!({
                "runtimeId": runtime.offer.id,
                "title": runtime.title,
                "workspaceFolders": runtime.offer.workspace_folders,
            })
        })
        .collect();
    Map::from_iter([
        ("runtimes".to_owned(), json!(ids)),
        ("candidates".to_owned(), json!(candidates)),
    ])
}

/// A list of runtimes for people: their ids with their first folders.
fn sentence<'a>(runtimes: impl Iterator<Item = &'a Runtime>) -> String {
    let described = runtimes.map(|runtime| match runtime.offer.workspace_folders.first() {
        Some(folder) => format!("{} ({})", runtime.offer.id, brief(folder)),
        None => runtime.offer.id.clone(),
    });
    let mut described: Vec<_> = described.collect();
    let more = described.len().saturating_sub(NAMED);
    described.truncate(NAMED);
    match more {
        0 => described.join(", "),
        more => format!("{} and {more} more", described.join(", ")),
    }
}

pub(super) fn overloaded(what: &str) -> WireError {
    let facts = Map::from_iter([("retryAfterMs".to_owned(), json!(100))]);
    ErrorKind::Overloaded.error_with(format!("{what}: wait a little, then try again"), facts)
}

pub(super) fn shutting_down() -> WireError {
    ErrorKind::ShuttingDown.error("the bridge is ending")
}

pub(super) fn timed_out(pending: &Pending, now: Instant) -> WireError {
    let elapsed = now - pending.started;
    let facts = Map::from_iter([
        ("elapsedMs".to_owned(), json!(elapsed.as_millis() as u64)),
        ("mayHaveExecuted".to_owned(), json!(true)),
    ]);
    let (method, seconds) = (&pending.method, elapsed.as_secs_f64());
    let reason = format!(
        "{method} timed out: the host did not answer within {seconds:.1} s; give it a longer timeout, or \
         look at what it is waiting for"
    );
    ErrorKind::Timeout.error_with(reason, facts)
}
