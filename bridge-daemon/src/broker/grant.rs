//! What the holder of a token may do, fixed before its first message is read.
//!
//! A client's grant is a set of rights. A host's grant says under which runtime ids it may register and which
//! tools it may serve there. No name is reserved anywhere else: the grants of the daemon's own children name
//! their ids, and the grant of the session's host token, which windows use, excludes them.

use std::sync::Arc;

use bridge_protocol::method::is_own;
use bridge_protocol::methods::CreateTokenParams;
use bridge_protocol::text::brief;
use bridge_protocol::{ErrorKind, Rights, SessionId, WireError, limits};
use serde_json::{Map, json};

use super::peers::Role;

/// A token may name at most this many runtime ids, and as many tools.
const ENTRIES: usize = 64;

/// What a connection may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Call methods that need these rights.
    Client(Rights),
    /// Register and serve.
    Host(Arc<HostGrant>),
}

/// What a host may register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGrant {
    runtime_ids: Scope<String>,
    tools: Scope<Tool>,
    standing: Standing,
}

/// The kind of host that a grant was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Windows and other hosts that the user attaches with the session's host token. They may make tokens
    /// for any tools, and end the daemon.
    General,
    /// A host in the daemon's process, or with a token from `bridge/createToken`. It may make narrower tokens.
    Single,
    /// A process that the daemon restarts whenever it ends.
    Child {
        /// Whether its tools are for every runtime.
        edge: bool,
    },
}

/// Either only the listed names, or all except those.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope<T> {
    Only(Vec<T>),
    AllBut(Vec<T>),
}

/// A tool by its name, or all tools of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tool {
    Name(String),
    /// Written `file/*`.
    Family(String),
}

impl Grant {
    /// The role of connections with this grant.
    pub fn role(&self) -> Role {
        match self {
            Self::Client(_) => Role::Client,
            Self::Host(_) => Role::Host,
        }
    }

    /// The rights of a client. A host has none.
    pub fn rights(&self) -> Option<Rights> {
        match self {
            Self::Client(rights) => Some(*rights),
            Self::Host(_) => None,
        }
    }

    /// Whether the holder may send events and finish operations. A client needs the right `chat`; a host must be
    /// allowed to serve `dapEvent`.
    pub fn may_talk(&self) -> bool {
        match self {
            Self::Client(rights) => rights.include(TALK),
            Self::Host(grant) => grant.allows_tool(bridge_protocol::DapEvent::NAME),
        }
    }

    /// The grant that `bridge/createToken` asks for, or an error if this grant does not allow making it.
    pub fn narrowed(&self, wanted: CreateTokenParams) -> Result<Self, WireError> {
        match (self, wanted) {
            (Self::Client(own), CreateTokenParams::Client { rights }) => {
                match own.missing(rights) {
                    Rights::NONE => Ok(Self::Client(rights)),
                    missing => Err(forbidden_rights(
                        "cannot make a token with more rights than this one",
                        missing,
                    )),
                }
            }
            (Self::Host(own), CreateTokenParams::Host { runtime_ids, tools }) => {
                Ok(Self::Host(Arc::new(own.narrowed(runtime_ids, tools)?)))
            }
            (Self::Client(_), CreateTokenParams::Host { .. }) => {
                Err(ErrorKind::WrongRole.error("only a host can make a token for hosts"))
            }
            (Self::Host(_), CreateTokenParams::Client { .. }) => {
                Err(ErrorKind::WrongRole.error("only a client can make a token for clients"))
            }
        }
    }
}

/// The right that events and `POST /submit` need: they belong to the conversation with the person.
const TALK: Rights = Rights::of(&[bridge_protocol::Right::Chat]);

/// The error for a client whose token lacks rights.
pub(super) fn forbidden_rights(what: &str, missing: Rights) -> WireError {
    let reason = format!(
        "{what}: the token lacks the right {missing}; `bridge-client token --rights {missing}`, run with the \
         session's own token, makes one that has it"
    );
    let facts = Map::from_iter([("needs".to_owned(), json!(missing))]);
    ErrorKind::Forbidden.error_with(reason, facts)
}

impl HostGrant {
    /// For windows and scripted hosts: every id and every tool except these, which other hosts have for
    /// themselves. A host that is to serve one of these families needs a token that names it, since it would read
    /// and answer requests that clients meant for another host.
    pub fn general(
        exclusive_ids: impl IntoIterator<Item = String>,
        exclusive_families: &[&str],
    ) -> Self {
        Self {
            runtime_ids: Scope::AllBut(exclusive_ids.into_iter().collect()),
            tools: Scope::AllBut(families(exclusive_families)),
            standing: Standing::General,
        }
    }

    /// For a process that the daemon starts, and restarts when it ends: this id and these families.
    pub fn child(runtime_id: &str, tool_families: &[&str], edge: bool) -> Self {
        Self {
            runtime_ids: Scope::Only(vec![runtime_id.to_owned()]),
            tools: Scope::Only(families(tool_families)),
            standing: Standing::Child { edge },
        }
    }

    /// For a host in the daemon's own process: this id and these families.
    pub fn own(runtime_id: &str, tool_families: &[&str]) -> Self {
        Self {
            runtime_ids: Scope::Only(vec![runtime_id.to_owned()]),
            tools: Scope::Only(families(tool_families)),
            standing: Standing::Single,
        }
    }

    /// Whether the daemon restarts the host when it ends.
    pub(super) fn returns(&self) -> bool {
        matches!(self.standing, Standing::Child { .. })
    }

    /// Whether the host may end the daemon. Only holders of the session's own host token may.
    pub fn may_end_daemon(&self) -> bool {
        self.standing == Standing::General
    }

    /// Whether the host may serve this tool.
    pub(super) fn allows_tool(&self, name: &str) -> bool {
        let listed = |tools: &[Tool]| tools.iter().any(|tool| tool.covers(name));
        match &self.tools {
            Scope::Only(tools) => listed(tools),
            Scope::AllBut(tools) => !listed(tools),
        }
    }

    /// Whether the host may register under this id.
    pub(super) fn allows_id(&self, id: &str) -> bool {
        let listed = |ids: &[String]| ids.iter().any(|own| own == id);
        match &self.runtime_ids {
            Scope::Only(ids) => listed(ids),
            Scope::AllBut(ids) => !listed(ids),
        }
    }

    /// The id, if the grant allows only one.
    pub(super) fn only_id(&self) -> Option<&str> {
        match &self.runtime_ids {
            Scope::Only(ids) if ids.len() == 1 => Some(&ids[0]),
            Scope::Only(_) | Scope::AllBut(_) => None,
        }
    }

    /// Whether the daemon may choose an id for this host.
    pub(super) fn takes_drawn_ids(&self) -> bool {
        matches!(self.runtime_ids, Scope::AllBut(_))
    }

    pub(super) fn check_id(&self, id: &str) -> Result<(), WireError> {
        if self.allows_id(id) {
            return Ok(());
        }
        let reason = match &self.runtime_ids {
            Scope::Only(ids) => {
                format!("the token is for the runtimeId {}, not for {id:?}", ids.join(", "))
            }
            Scope::AllBut(_) => {
                format!("the runtimeId {id:?} is for a host that the daemon starts: choose another")
            }
        };
        Err(forbidden_id(reason, id))
    }

    /// Whether this host may replace another that has registered this id. A token that names the id always may, so
    /// that a sandbox can reconnect. The session's own host token, which names none, replaces only hosts that
    /// hold the same token, so that no window can take the place of a sandbox by mistake.
    pub(super) fn check_replaces(&self, holder: &Self, id: &str) -> Result<(), WireError> {
        match (&self.runtime_ids, &holder.runtime_ids) {
            (Scope::AllBut(_), Scope::Only(_)) => {
                let reason = format!(
                    "the runtimeId {id:?} is in use by a host with a token of its own: choose another"
                );
                Err(forbidden_id(reason, id))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_tools<'a>(
        &self,
        tools: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), WireError> {
        let refused = tools.into_iter().filter(|tool| !self.allows_tool(tool)).cloned();
        self.refuse(refused.collect())
    }

    pub(super) fn check_edge(&self) -> Result<(), WireError> {
        match self.standing {
            Standing::Child { edge: true } => Ok(()),
            _ => {
                Err(ErrorKind::Forbidden.error("this host's token does not allow it to be an edge"))
            }
        }
    }

    fn narrowed(&self, runtime_ids: Vec<String>, tools: Vec<String>) -> Result<Self, WireError> {
        for list in [&runtime_ids, &tools] {
            if list.is_empty() || list.len() > ENTRIES {
                let reason = format!("name 1 to {ENTRIES} runtimeIds and as many tools");
                return Err(ErrorKind::InvalidParams.error(reason));
            }
        }
        for id in &runtime_ids {
            checked_id(id)?;
            self.check_id(id)?;
        }
        let parsed = tools.iter().map(|tool| Tool::parse(tool)).collect::<Result<Vec<_>, _>>()?;
        if self.standing != Standing::General {
            let refused = tools.iter().zip(&parsed).filter(|(_, tool)| !self.includes(tool));
            self.refuse(refused.map(|(text, _)| text.clone()).collect())?;
        }
        Ok(Self {
            runtime_ids: Scope::Only(runtime_ids),
            tools: Scope::Only(parsed),
            standing: Standing::Single,
        })
    }

    /// Whether every tool that `tool` covers is allowed.
    fn includes(&self, tool: &Tool) -> bool {
        match (tool, &self.tools) {
            (Tool::Name(name), _) => self.allows_tool(name),
            (family, Scope::Only(tools)) => tools.contains(family),
            (Tool::Family(family), Scope::AllBut(tools)) => {
                !tools.iter().any(|tool| tool.family() == Some(family))
            }
        }
    }

    fn refuse(&self, tools: Vec<String>) -> Result<(), WireError> {
        if tools.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "this host's token does not allow it to serve {}: `bridge-client token --host` makes one that does",
            brief(&tools.join(", "))
        );
        let facts = Map::from_iter([("tools".to_owned(), json!(tools))]);
        Err(ErrorKind::Forbidden.error_with(reason, facts))
    }
}

impl Tool {
    fn parse(text: &str) -> Result<Self, WireError> {
        let tool = match text.strip_suffix("/*") {
            Some(family) => Self::Family(family.to_owned()),
            None => Self::Name(text.to_owned()),
        };
        let valid = match &tool {
            Self::Name(name) => is_tool_name(name),
            Self::Family(family) => {
                !family.is_empty() && !family.contains('/') && is_tool_name(&format!("{family}/x"))
            }
        };
        match valid && !text.trim_end_matches("/*").contains('*') {
            true => Ok(tool),
            false => Err(ErrorKind::InvalidParams.error(format!(
                "{:?} is not a tool: write the name of a method, or a family such as file/*",
                brief(text)
            ))),
        }
    }

    fn covers(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Family(family) => family_of(name) == Some(family),
        }
    }

    fn family(&self) -> Option<&str> {
        match self {
            Self::Name(name) => family_of(name),
            Self::Family(family) => Some(family),
        }
    }
}

/// Whether the name can be that of a tool: not of the daemon's own methods, not too long.
pub(super) fn is_tool_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= limits::METHOD_BYTES
        && !is_own(name)
        && !name.starts_with('$')
}

/// Checks that a runtime id has only the characters of a session id, which are safe wherever it is shown.
pub(super) fn checked_id(id: &str) -> Result<(), WireError> {
    id.parse::<SessionId>().map(drop).map_err(|_| {
        let reason = "runtimeId must be 1 to 64 of the characters A-Z a-z 0-9 _ -";
        ErrorKind::InvalidParams.error(reason)
    })
}

fn forbidden_id(reason: String, id: &str) -> WireError {
    let facts = Map::from_iter([("runtimeId".to_owned(), json!(id))]);
    ErrorKind::Forbidden.error_with(reason, facts)
}

fn families(names: &[&str]) -> Vec<Tool> {
    names.iter().map(|name| Tool::Family((*name).to_owned())).collect()
}

/// The part of a method's name before the first slash.
pub(super) fn family_of(name: &str) -> Option<&str> {
    name.split_once('/').map(|(family, _)| family)
}

#[cfg(test)]
mod tests;
