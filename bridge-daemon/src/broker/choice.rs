//! Which runtime a request is for.
//!
//! The first of these that applies: an edge that serves the method; the runtime that the request names; the runtime
//! whose folder is the longest prefix of the path that the request names; the only runtime that serves the method.
//! A request that writes or runs is never sent to a guessed runtime: several that fit equally well are an error.
//! Only `vscode/*` and events, which are for a person, go to the window that the person looks at.
//!
//! A runtime that the daemon is restarting counts as attached. A request waits for any other runtime that has left
//! only if no attached one fits.

use bridge_protocol::folders::{deepest, innermost, is_comparable};
use bridge_protocol::timeout::RoutingParams;
use bridge_protocol::{DapEvent, Method};

use super::grant::family_of;
use super::peers::{Defaults, PeerId};
use super::runtimes::{Offer, Runtime, Runtimes};

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// To this host.
    Host(PeerId),
    /// Nowhere yet: a host that could take it may register later.
    Wait,
    /// Nowhere: the runtime that the request names is not attached.
    NoSuchRuntime(String),
    /// Nowhere: no runtime that serves the method has the path in its folders.
    NoSuchFolder(String),
    /// Nowhere: no runtime, or not the one that the request names, serves the method.
    NotServed,
    /// Nowhere: several runtimes fit equally well, and a guess could do harm. Holds their ids.
    Ambiguous(Vec<String>),
}

/// What a request says about its runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    runtime: Wish,
    /// An absolute path without `..`.
    path: Option<String>,
}

/// Which runtime is named, and by whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Wish {
    /// No runtime is named.
    #[default]
    Any,
    /// The request names this runtime: no other may get it.
    Exactly(String),
    /// The connection has named this runtime in `bridge/hello`: it gets whatever it serves.
    Preferably(String),
}

impl Target {
    /// The runtime and path of the request, or else the defaults of its connection.
    pub fn new(routing: &mut RoutingParams, defaults: &Defaults) -> Self {
        let path = routing.path.take().filter(|path| is_comparable(path));
        match (routing.runtime_id.take(), path) {
            (Some(id), _) => Self { runtime: Wish::Exactly(id), path: None },
            (None, Some(path)) => Self { runtime: Wish::Any, path: Some(path) },
            (None, None) => Self {
                runtime: defaults.runtime_id.clone().map_or(Wish::Any, Wish::Preferably),
                path: defaults.path.clone().filter(|path| is_comparable(path)),
            },
        }
    }
}

impl Runtimes {
    /// Which host a request is for.
    pub fn choose(&self, method: &str, target: &Target) -> Choice {
        if let Some(choice) = self.edge(method) {
            return choice;
        }
        match &target.runtime {
            Wish::Exactly(id) => return self.named(method, id),
            Wish::Preferably(id) => match self.named(method, id) {
                Choice::NotServed => {}
                choice => return choice,
            },
            Wish::Any => {}
        }
        let candidates = self.candidates(method);
        match (is_for_a_person(method), target.path.as_deref()) {
            (true, None) => self.by_focus(method, candidates),
            (true, Some(path)) => match innermost(candidates.clone(), folders, path) {
                inside if inside.is_empty() => self.by_focus(method, candidates),
                inside => self.by_focus(method, inside.into_iter()),
            },
            (false, Some(path)) => self.by_path(method, path, candidates),
            (false, None) => self.only(method, candidates),
        }
    }

    /// The host that gets events.
    pub fn for_events(&self) -> Option<PeerId> {
        match self.by_focus(DapEvent::NAME, self.candidates(DapEvent::NAME)) {
            Choice::Host(peer) => Some(peer),
            _ => None,
        }
    }

    fn edge(&self, method: &str) -> Option<Choice> {
        let serves = |offer: &Offer| offer.edge && offer.serves(method);
        if let Some(edge) = self.attached.iter().find(|runtime| serves(&runtime.offer)) {
            return Some(Choice::Host(edge.peer));
        }
        self.departed.iter().any(|gone| serves(&gone.offer)).then_some(Choice::Wait)
    }

    fn named(&self, method: &str, id: &str) -> Choice {
        let gone = || self.departed.iter().find(|gone| gone.offer.id == id);
        match (self.with_id(id), gone()) {
            (Some(runtime), _) if runtime.offer.serves(method) => Choice::Host(runtime.peer),
            (None, Some(gone)) if gone.offer.serves(method) => Choice::Wait,
            (Some(_), _) | (_, Some(_)) => Choice::NotServed,
            (None, None) => Choice::NoSuchRuntime(id.to_owned()),
        }
    }

    /// The runtimes that serve a method, including those that the daemon is restarting.
    fn candidates<'a>(&'a self, method: &'a str) -> impl Iterator<Item = Candidate<'a>> + Clone {
        let attached = self.attached.iter();
        let attached =
            attached.map(|runtime| Candidate { offer: &runtime.offer, attached: Some(runtime) });
        let returning = self.departed.iter().filter(|gone| gone.returns);
        let returning = returning.map(|gone| Candidate { offer: &gone.offer, attached: None });
        let all = attached.chain(returning);
        all.filter(move |candidate| candidate.offer.serves(method) && !candidate.offer.edge)
    }

    fn only<'a>(
        &self,
        method: &str,
        candidates: impl Iterator<Item = Candidate<'a>> + Clone,
    ) -> Choice {
        let mut each = candidates.clone();
        match (each.next(), each.next()) {
            (Some(only), None) => only.choice(),
            (Some(_), Some(_)) => ambiguous(candidates),
            (None, _) if self.departed.iter().any(|gone| gone.offer.serves(method)) => Choice::Wait,
            (None, _) => Choice::NotServed,
        }
    }

    fn by_path<'a>(
        &self,
        method: &str,
        path: &str,
        mut candidates: impl Iterator<Item = Candidate<'a>> + Clone,
    ) -> Choice {
        let inside = innermost(candidates.clone(), folders, path);
        let gone_with_it = || {
            let mut gone = self.departed.iter().map(|gone| &gone.offer);
            gone.any(|offer| {
                offer.serves(method) && deepest(&offer.workspace_folders, path).is_some()
            })
        };
        match &inside[..] {
            [one] => return one.choice(),
            [_, _, ..] => return ambiguous(inside.into_iter()),
            [] if gone_with_it() => return Choice::Wait,
            [] => {}
        }
        match (candidates.next(), candidates.next()) {
            (None, _) => self.only(method, candidates),
            // This runtime itself answers that the path is outside of its workspace.
            (Some(only), None) if family_of(method) == Some("file") => only.choice(),
            (Some(_), _) => Choice::NoSuchFolder(path.to_owned()),
        }
    }

    /// The window with the focus, or else the one that had it last, or else the newest. Editor commands do not go
    /// to a window that never had the focus if there are several.
    fn by_focus<'a>(
        &self,
        method: &str,
        mut candidates: impl Iterator<Item = Candidate<'a>> + Clone,
    ) -> Choice {
        let attached = candidates.clone().filter_map(|candidate| candidate.attached);
        // `max_by_key` returns the last of equals, here the newest.
        match attached.clone().max_by_key(|runtime| (runtime.focused, runtime.last_focus)) {
            Some(best)
                if Method::from_name(method) == Some(Method::ExecuteCommand)
                    && best.last_focus == 0
                    && attached.count() > 1 =>
            {
                ambiguous(candidates)
            }
            Some(best) => Choice::Host(best.peer),
            None if candidates.next().is_some() => Choice::Wait,
            None if Method::from_name(method).is_some() && !self.could_serve(method) => {
                Choice::Wait
            }
            None => Choice::NotServed,
        }
    }

    /// Whether a host is attached whose token allows it to serve the method.
    fn could_serve(&self, method: &str) -> bool {
        self.attached.iter().any(|runtime| runtime.grant.allows_tool(method))
    }
}

/// A runtime that serves a method, or will serve it after its restart.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    offer: &'a Offer,
    attached: Option<&'a Runtime>,
}

impl Candidate<'_> {
    fn choice(&self) -> Choice {
        self.attached.map_or(Choice::Wait, |runtime| Choice::Host(runtime.peer))
    }
}

fn folders<'a>(candidate: &Candidate<'a>) -> &'a [String] {
    &candidate.offer.workspace_folders
}

fn ambiguous<'a>(candidates: impl Iterator<Item = Candidate<'a>>) -> Choice {
    Choice::Ambiguous(candidates.map(|candidate| candidate.offer.id.clone()).collect())
}

/// Whether the method is answered by a person or by the window that the person looks at.
fn is_for_a_person(method: &str) -> bool {
    family_of(method) == Some("vscode")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_names_replaces_what_its_connection_named() {
        let defaults = Defaults { runtime_id: Some("usual".into()), path: Some("/usual".into()) };
        let target = |runtime_id: Option<&str>, path: Option<&str>| {
            let mut routing = RoutingParams {
                timeout: None,
                runtime_id: runtime_id.map(str::to_owned),
                path: path.map(str::to_owned),
            };
            Target::new(&mut routing, &defaults)
        };
        let exactly = Wish::Exactly("w".into());
        assert_eq!(target(Some("w"), Some("/p")), Target { runtime: exactly, path: None });
        let by_path = Target { runtime: Wish::Any, path: Some("/p".into()) };
        assert_eq!(target(None, Some("/p")), by_path);
        let usual =
            Target { runtime: Wish::Preferably("usual".into()), path: Some("/usual".into()) };
        assert_eq!(target(None, Some("relative")), usual);
        assert_eq!(target(None, None), usual);
    }
}
