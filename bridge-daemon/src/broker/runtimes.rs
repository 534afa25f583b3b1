//! The hosts that have registered, and which of them a request is for.

use std::collections::VecDeque;

use bridge_protocol::methods::{RegisterParams, UpdateParams};
use bridge_protocol::{ErrorKind, Event as DapEvent, SessionId, WireError};
use bridge_protocol::{Method, limits};
use rustc_hash::FxHashSet;

use super::peers::PeerId;

/// Names of runtimes that were here before: a request for one of them waits for its return.
const REMEMBERED: usize = 64;
/// A host registers at most this many methods.
const METHODS: usize = 256;
/// And this many folders, each of at most [`TEXT_BYTES`].
const FOLDERS: usize = 64;
const TEXT_BYTES: usize = 4096;

/// Whether only the daemon's own sandbox may serve this name.
pub(super) fn is_sandbox(name: &str) -> bool {
    ["shell/", "file/", "action/"].iter().any(|family| name.starts_with(family))
}

/// Name of the daemon's own sandbox among the runtimes.
pub(crate) const SANDBOX: &str = "sandbox";

/// Where a registration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// From a host like any other. The name [`SANDBOX`] and methods `sandbox/*` and `action/*` are not for it: who
    /// took them could read and forge every command of a client.
    Connection,
    /// From the daemon's own sandbox.
    Sandbox,
}

/// A host that has registered.
#[derive(Debug)]
pub(super) struct Runtime {
    pub peer: PeerId,
    pub id: String,
    pub title: String,
    pub workspace_folders: Vec<String>,
    /// At most [`METHODS`], so it does no harm if their names collide.
    pub methods: FxHashSet<String>,
    pub focused: bool,
    /// Grows with each gain of focus; 0 when it never had any.
    last_focus: u64,
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// To this host.
    Host(PeerId),
    /// Nowhere yet: a host that could take it may come.
    Wait,
    /// Nowhere ever.
    Nobody,
    /// More than one is equally good, and guessing could do harm.
    Ambiguous,
}

/// All hosts that have registered, oldest first.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    runtimes: Vec<Runtime>,
    departed: VecDeque<String>,
    focus_clock: u64,
    drawn: u64,
}

impl Runtimes {
    pub fn iter(&self) -> impl Iterator<Item = &Runtime> {
        self.runtimes.iter()
    }

    pub fn get(&self, peer: PeerId) -> Option<&Runtime> {
        self.runtimes.iter().find(|runtime| runtime.peer == peer)
    }

    pub fn with_id(&self, id: &str) -> Option<&Runtime> {
        self.runtimes.iter().find(|runtime| runtime.id == id)
    }

    /// The daemon's own sandbox, if it has one.
    pub fn sandbox(&self) -> Option<&Runtime> {
        self.with_id(SANDBOX)
    }

    /// All but the sandbox, which does nothing that an editor does.
    fn windows(&self) -> impl Iterator<Item = &Runtime> {
        self.runtimes.iter().filter(|runtime| runtime.id != SANDBOX)
    }

    /// The names of those that a caller might choose from, for error messages.
    pub fn names(&self) -> Vec<&str> {
        self.windows().map(|runtime| runtime.id.as_str()).collect()
    }

    /// Enters or replaces a registration. Returns the name and, if another connection held it,
    /// that connection.
    pub fn register(
        &mut self,
        peer: PeerId,
        params: RegisterParams,
        origin: Origin,
    ) -> Result<(String, Option<PeerId>), WireError> {
        let id = match params.runtime_id {
            Some(id) if id == SANDBOX && origin == Origin::Connection => {
                let reason = "the runtimeId \"sandbox\" is the daemon's own: choose another";
                return Err(ErrorKind::InvalidParams.error(reason));
            }
            // The same characters as a session id: safe wherever it is shown.
            Some(id) if id.parse::<SessionId>().is_ok() => id,
            Some(_) => {
                let reason = "runtimeId must be 1 to 64 of the characters A-Z a-z 0-9 _ -";
                return Err(ErrorKind::InvalidParams.error(reason));
            }
            None => self.draw_id(),
        };
        let methods = checked_methods(params.methods, origin)?;
        let workspace_folders = checked_texts(params.workspace_folders)?;
        let replaced = self.with_id(&id).map(|old| old.peer).filter(|old| *old != peer);
        self.runtimes.retain(|old| old.id != id && old.peer != peer);
        self.departed.retain(|departed| *departed != id);
        self.runtimes.push(Runtime {
            peer,
            id: id.clone(),
            title: shortened(params.title),
            workspace_folders,
            methods,
            focused: false,
            last_focus: 0,
        });
        if params.focused {
            self.focus(peer);
        }
        Ok((id, replaced))
    }

    /// A name that no host has.
    fn draw_id(&mut self) -> String {
        loop {
            self.drawn += 1;
            let id = format!("runtime-{}", self.drawn);
            if self.with_id(&id).is_none() {
                return id;
            }
        }
    }

    pub fn update(&mut self, peer: PeerId, params: UpdateParams) -> Result<(), WireError> {
        let methods = params.methods.map(|names| checked_methods(names, Origin::Connection));
        let methods = methods.transpose()?;
        let folders = params.workspace_folders.map(checked_texts).transpose()?;
        let Some(runtime) = self.runtimes.iter_mut().find(|runtime| runtime.peer == peer) else {
            return Err(ErrorKind::InvalidRequest.error("call runtime/register first"));
        };
        if let Some(methods) = methods {
            runtime.methods = methods;
        }
        if let Some(folders) = folders {
            runtime.workspace_folders = folders;
        }
        if let Some(title) = params.title {
            runtime.title = shortened(title);
        }
        match params.focused {
            Some(true) => self.focus(peer),
            Some(false) => runtime.focused = false,
            None => {}
        }
        Ok(())
    }

    /// Takes a host off the list, but remembers its name. Returns whether it was there.
    pub fn remove(&mut self, peer: PeerId) -> bool {
        let Some(at) = self.runtimes.iter().position(|runtime| runtime.peer == peer) else {
            return false;
        };
        let id = self.runtimes.remove(at).id;
        if self.departed.len() == REMEMBERED {
            self.departed.pop_front();
        }
        self.departed.push_back(id);
        true
    }

    /// Which host a request is for.
    pub fn choose(&self, method: &str, runtime_id: Option<&str>) -> Choice {
        let known = Method::from_name(method);
        if let Some(id) = runtime_id {
            return match self.with_id(id) {
                Some(runtime) if runtime.methods.contains(method) => Choice::Host(runtime.peer),
                Some(_) => Choice::Nobody,
                None if self.departed.iter().any(|departed| departed == id) => Choice::Wait,
                None => Choice::Nobody,
            };
        }
        let candidates = || self.runtimes.iter().filter(|runtime| runtime.methods.contains(method));
        // `max_by_key` returns the last of equals, here the newest.
        match candidates().max_by_key(|runtime| (runtime.focused, runtime.last_focus)) {
            Some(best)
                if known == Some(Method::ExecuteCommand)
                    && best.last_focus == 0
                    && candidates().count() > 1 =>
            {
                Choice::Ambiguous
            }
            Some(best) => Choice::Host(best.peer),
            None if known.is_some() && self.windows().next().is_none() => Choice::Wait,
            None => Choice::Nobody,
        }
    }

    /// The host that shall hear of events.
    pub fn for_events(&self) -> Option<PeerId> {
        match self.choose(DapEvent::NAME, None) {
            Choice::Host(peer) => Some(peer),
            Choice::Wait | Choice::Nobody | Choice::Ambiguous => None,
        }
    }

    fn focus(&mut self, peer: PeerId) {
        self.focus_clock += 1;
        for runtime in &mut self.runtimes {
            runtime.focused = runtime.peer == peer;
            if runtime.focused {
                runtime.last_focus = self.focus_clock;
            }
        }
    }
}

fn checked_methods(methods: Vec<String>, origin: Origin) -> Result<FxHashSet<String>, WireError> {
    let valid = |name: &String| {
        !name.is_empty()
            && name.len() <= limits::METHOD_BYTES
            && !bridge_protocol::method::is_own(name)
            && !name.starts_with('$')
            && (origin == Origin::Sandbox || !is_sandbox(name))
    };
    if methods.len() > METHODS || !methods.iter().all(valid) {
        let reason = format!(
            "methods must be at most {METHODS} names of at most {} bytes, none of them bridge/*, runtime/*, sandbox/*, action/* or $*",
            limits::METHOD_BYTES
        );
        return Err(ErrorKind::InvalidParams.error(reason));
    }
    Ok(methods.into_iter().collect())
}

fn checked_texts(texts: Vec<String>) -> Result<Vec<String>, WireError> {
    if texts.len() > FOLDERS || texts.iter().any(|text| text.len() > TEXT_BYTES) {
        let reason = format!("at most {FOLDERS} folders of at most {TEXT_BYTES} bytes each");
        return Err(ErrorKind::InvalidParams.error(reason));
    }
    Ok(texts)
}

fn shortened(title: String) -> String {
    title.chars().filter(|char| !char.is_control()).take(256).collect()
}
