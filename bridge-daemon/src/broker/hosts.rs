//! Hosts register, update and leave (`runtime/*`), and what that means for requests and operations.

use std::time::Instant;

use bridge_protocol::methods::{RegisterParams, RegisterResult, RuntimeInfo, UpdateParams};
use bridge_protocol::text::brief;
use bridge_protocol::{ErrorKind, WireError};

use super::peers::PeerId;
use super::runtimes::Runtime;
use super::{Broker, CloseReason};

impl Broker {
    /// `runtime/register`: from now on requests go to this host.
    pub fn register(
        &mut self,
        host: PeerId,
        params: RegisterParams,
        now: Instant,
    ) -> Result<RegisterResult, WireError> {
        let Some(grant) = self.peers.host_grant(host) else {
            return Err(ErrorKind::WrongRole.error("only a host can register"));
        };
        let (runtime_id, replaced) = self.runtimes.register(host, grant, params)?;
        if let Some(old) = replaced {
            self.fail_requests_at(old, now);
            self.close(old, CloseReason::Replaced, now);
        }
        self.forward_parked(now);
        self.announce_operations();
        Ok(RegisterResult { runtime_id })
    }

    /// `runtime/update`.
    pub fn update(
        &mut self,
        host: PeerId,
        params: UpdateParams,
        now: Instant,
    ) -> Result<(), WireError> {
        self.runtimes.update(host, params)?;
        self.forward_parked(now);
        self.announce_operations();
        Ok(())
    }

    /// `runtime/unregister`. Also called when a host's connection ends.
    pub fn detach(&mut self, host: PeerId, now: Instant) {
        self.fail_requests_at(host, now);
        if self.runtimes.remove(host) {
            // Another window takes over the operations that were assigned to this one.
            self.announce_operations();
        }
    }

    /// `runtime/list`.
    pub fn runtimes(&self) -> Vec<RuntimeInfo> {
        self.runtimes.iter().map(|runtime| self.info(runtime)).collect()
    }

    /// `runtime/get`.
    pub fn runtime(&self, id: &str) -> Result<RuntimeInfo, WireError> {
        match self.runtimes.with_id(id) {
            Some(runtime) => Ok(self.info(runtime)),
            None => Err(self.unavailable(format!("no runtime {:?} is attached", brief(id)), None)),
        }
    }

    fn info(&self, runtime: &Runtime) -> RuntimeInfo {
        let offer = &runtime.offer;
        let mut methods: Vec<_> = offer.methods.iter().cloned().collect();
        methods.sort_unstable();
        RuntimeInfo {
            runtime_id: offer.id.clone(),
            title: runtime.title.clone(),
            workspace_folders: offer.workspace_folders.clone(),
            methods,
            focused: runtime.focused,
            in_flight: self.pending.count(|pending| pending.host() == Some(runtime.peer)),
            edge: offer.edge,
        }
    }
}
