//! The hosts that have registered, and those whose connections have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use bridge_protocol::methods::{RegisterParams, UpdateParams};
use bridge_protocol::{ErrorKind, WireError, limits};
use rustc_hash::FxHashSet;

use super::grant::{HostGrant, checked_id, is_tool_name};
use super::peers::PeerId;

/// How many runtimes are remembered after they have left. A request for one of them waits for its return. Those
/// that the daemon restarts are remembered beyond this number.
const REMEMBERED: usize = 64;
/// A host registers at most this many methods.
const METHODS: usize = 256;
/// A host registers at most this many folders, each of at most [`TEXT_BYTES`].
const FOLDERS: usize = 64;
const TEXT_BYTES: usize = 4096;

/// A host that has registered.
#[derive(Debug)]
pub(super) struct Runtime {
    pub peer: PeerId,
    pub grant: Arc<HostGrant>,
    pub title: String,
    pub offer: Offer,
    pub focused: bool,
    /// When the runtime last gained the focus, as a count of such gains; 0 if it never did.
    pub last_focus: u64,
}

/// What a runtime serves, and for which folders.
#[derive(Debug)]
pub(super) struct Offer {
    pub id: String,
    pub workspace_folders: Vec<String>,
    /// At most [`METHODS`], so hash collisions that a host provokes do no harm.
    pub methods: FxHashSet<String>,
    /// Whether its methods are for every runtime.
    pub edge: bool,
}

/// A runtime whose connection has ended.
#[derive(Debug)]
pub(super) struct Departed {
    pub offer: Offer,
    /// Whether the daemon restarts it. It then counts as attached, and requests wait for it.
    pub returns: bool,
}

/// All hosts that have registered, oldest first.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    pub(super) attached: Vec<Runtime>,
    pub(super) departed: VecDeque<Departed>,
    focus_clock: u64,
    drawn: u64,
}

impl Runtimes {
    pub fn iter(&self) -> impl Iterator<Item = &Runtime> {
        self.attached.iter()
    }

    pub fn get(&self, peer: PeerId) -> Option<&Runtime> {
        self.attached.iter().find(|runtime| runtime.peer == peer)
    }

    pub fn with_id(&self, id: &str) -> Option<&Runtime> {
        self.attached.iter().find(|runtime| runtime.offer.id == id)
    }

    /// Adds or replaces a registration. Returns the runtime id and, if another connection held it, that
    /// connection.
    pub fn register(
        &mut self,
        peer: PeerId,
        grant: &Arc<HostGrant>,
        params: RegisterParams,
    ) -> Result<(String, Option<PeerId>), WireError> {
        let methods = checked_methods(params.methods, grant)?;
        let workspace_folders = checked_texts(params.workspace_folders)?;
        let id = self.id_for(grant, params.runtime_id)?;
        if params.edge {
            grant.check_edge()?;
            self.check_no_other_edge(&id, &methods)?;
        }
        let replaced = self.with_id(&id).filter(|old| old.peer != peer);
        if let Some(old) = replaced {
            grant.check_replaces(&old.grant, &id)?;
        }
        let replaced = replaced.map(|old| old.peer);
        self.attached.retain(|old| old.offer.id != id && old.peer != peer);
        self.departed.retain(|departed| departed.offer.id != id);
        let offer = Offer { id: id.clone(), workspace_folders, methods, edge: params.edge };
        self.attached.push(Runtime {
            peer,
            grant: Arc::clone(grant),
            title: shortened(params.title),
            offer,
            focused: false,
            last_focus: 0,
        });
        if params.focused {
            self.focus(peer);
        }
        Ok((id, replaced))
    }

    fn id_for(&mut self, grant: &HostGrant, wanted: Option<String>) -> Result<String, WireError> {
        match (wanted, grant.only_id()) {
            (Some(id), _) => {
                checked_id(&id)?;
                grant.check_id(&id)?;
                Ok(id)
            }
            (None, Some(only)) => Ok(only.to_owned()),
            (None, None) if grant.takes_drawn_ids() => Ok(self.draw_id(grant)),
            (None, None) => {
                let reason =
                    "the token is for several runtimeIds: name the one that this host registers";
                Err(ErrorKind::InvalidParams.error(reason))
            }
        }
    }

    /// Makes up an id that no host has.
    fn draw_id(&mut self, grant: &HostGrant) -> String {
        loop {
            self.drawn += 1;
            let id = format!("runtime-{}", self.drawn);
            if self.with_id(&id).is_none() && grant.allows_id(&id) {
                return id;
            }
        }
    }

    /// Checks that no other edge serves one of these methods: it could only be routed by a guess.
    fn check_no_other_edge(&self, id: &str, methods: &FxHashSet<String>) -> Result<(), WireError> {
        let others = self.attached.iter().filter(|other| other.offer.edge && other.offer.id != id);
        match others.flat_map(|other| &other.offer.methods).find(|name| methods.contains(*name)) {
            Some(taken) => {
                let reason = format!("another edge serves {taken:?} already: detach it first");
                Err(ErrorKind::Conflict.error(reason))
            }
            None => Ok(()),
        }
    }

    pub fn update(&mut self, peer: PeerId, params: UpdateParams) -> Result<(), WireError> {
        let Some(runtime) = self.get(peer) else {
            return Err(ErrorKind::InvalidRequest.error("call runtime/register first"));
        };
        let grant = Arc::clone(&runtime.grant);
        let methods = params.methods.map(|names| checked_methods(names, &grant)).transpose()?;
        let folders = params.workspace_folders.map(checked_texts).transpose()?;
        if let Some(methods) = methods.as_ref().filter(|_| runtime.offer.edge) {
            self.check_no_other_edge(&runtime.offer.id, methods)?;
        }
        let Some(runtime) = self.attached.iter_mut().find(|runtime| runtime.peer == peer) else {
            return Ok(());
        };
        if let Some(methods) = methods {
            runtime.offer.methods = methods;
        }
        if let Some(folders) = folders {
            runtime.offer.workspace_folders = folders;
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

    /// Removes a host, and remembers it among those that have left. Returns whether it was registered.
    pub fn remove(&mut self, peer: PeerId) -> bool {
        let Some(at) = self.attached.iter().position(|runtime| runtime.peer == peer) else {
            return false;
        };
        let Runtime { offer, grant, .. } = self.attached.remove(at);
        if self.departed.iter().filter(|departed| !departed.returns).count() == REMEMBERED
            && let Some(oldest) = self.departed.iter().position(|departed| !departed.returns)
        {
            self.departed.remove(oldest);
        }
        self.departed.push_back(Departed { offer, returns: grant.returns() });
        true
    }

    fn focus(&mut self, peer: PeerId) {
        self.focus_clock += 1;
        for runtime in &mut self.attached {
            runtime.focused = runtime.peer == peer;
            if runtime.focused {
                runtime.last_focus = self.focus_clock;
            }
        }
    }
}

impl Offer {
    pub fn serves(&self, method: &str) -> bool {
        self.methods.contains(method)
    }
}

fn checked_methods(
    methods: Vec<String>,
    grant: &HostGrant,
) -> Result<FxHashSet<String>, WireError> {
    if methods.len() > METHODS || !methods.iter().all(|name| is_tool_name(name)) {
        let reason = format!(
            "methods must be at most {METHODS} names of at most {} bytes, none of them bridge/*, runtime/* or $*",
            limits::METHOD_BYTES
        );
        return Err(ErrorKind::InvalidParams.error(reason));
    }
    grant.check_tools(&methods)?;
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
