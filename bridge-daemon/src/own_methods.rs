//! The daemon's own methods, `bridge/*` and `runtime/*`. Each is looked up by name and called with typed params. The
//! broker has parsed the message; here only the params are parsed, once.

use std::sync::Arc;

use bridge_protocol::answer::{Answer, print_result, read_params, unknown_method};
use bridge_protocol::methods::{
    CreateToken, CreateTokenResult, Empty, GetRuntime, Hello, HelloParams, HelloResult,
    ListRuntimes, MethodType, Ping, Register, RequestRecord, Shutdown, Status, Tail, Unregister,
    Update,
};
use bridge_protocol::{ErrorKind, PROTOCOL_VERSION, WireError};
use serde_json::value::RawValue;
use serde_json::{Map, json};
use tracing::info;

use crate::broker::{Grant, PeerId, Role};
use crate::hub::Hub;

/// The connection that calls a method.
struct Caller<'a> {
    hub: &'a Arc<Hub>,
    peer: PeerId,
    role: Role,
}

/// Calls a method. Returns an error if it does not exist.
pub fn call(
    hub: &Arc<Hub>,
    peer: PeerId,
    role: Role,
    name: &str,
    params: Option<&RawValue>,
) -> Answer {
    let caller = &Caller { hub, peer, role };
    match name {
        Hello::NAME => caller.answer::<Hello>(params, |params| caller.hello(params)),
        Ping::NAME => caller.answer::<Ping>(params, |_| Ok(Empty {})),
        Status::NAME => caller.answer::<Status>(params, |_| Ok(hub.status())),
        Tail::NAME => caller.answer::<Tail>(params, |_| {
            hub.with_broker(|broker, _| broker.tail(peer));
            Ok(Empty {})
        }),
        CreateToken::NAME => caller.answer::<CreateToken>(params, |params| {
            let grant = hub.with_broker(|broker, _| broker.narrowed(peer, params))?;
            let token = hub.create_token(grant)?;
            info!(%peer, "made a token");
            Ok(CreateTokenResult { token })
        }),
        Shutdown::NAME => caller.answer_host::<Shutdown>(params, |_| caller.shut_down()),
        Register::NAME => caller.answer_host::<Register>(params, |params| {
            let registered = hub.with_broker(|broker, now| broker.register(peer, params, now))?;
            info!(host = %peer, runtime = registered.runtime_id, "registered");
            hub.has_registered();
            Ok(registered)
        }),
        Update::NAME => caller.answer_host::<Update>(params, |params| {
            hub.with_broker(|broker, now| broker.update(peer, params, now))?;
            Ok(Empty {})
        }),
        Unregister::NAME => caller.answer_host::<Unregister>(params, |_| {
            hub.with_broker(|broker, now| broker.detach(peer, now));
            Ok(Empty {})
        }),
        ListRuntimes::NAME => caller
            .answer::<ListRuntimes>(params, |_| Ok(hub.with_broker(|broker, _| broker.runtimes()))),
        GetRuntime::NAME => caller.answer::<GetRuntime>(params, |params| {
            hub.with_broker(|broker, _| broker.runtime(&params.runtime_id))
        }),
        _ => Err(unknown_method(name)),
    }
}

/// Writes one line to the daemon's log for a request that has ended, without its content.
pub fn log(record: &RequestRecord) {
    let span = tracing::info_span!(
        "request",
        id = record.request,
        client = record.client,
        method = &*record.method,
        runtime = record.runtime_id,
    );
    let _entered = span.enter();
    info!(
        outcome = &*record.outcome,
        wait_ms = record.wait_ms,
        host_ms = record.host_ms,
        request_bytes = record.request_bytes,
        response_bytes = record.response_bytes,
        "done"
    );
}

impl Caller<'_> {
    /// Parses the params, calls the method, and prints the result.
    fn answer<M: MethodType>(
        &self,
        params: Option<&RawValue>,
        act: impl FnOnce(M::Params) -> Result<M::Result, WireError>,
    ) -> Answer {
        print_result::<M>(&act(read_params::<M>(params)?)?)
    }

    /// Like [`answer`](Self::answer), for methods that only hosts may call.
    fn answer_host<M: MethodType>(
        &self,
        params: Option<&RawValue>,
        act: impl FnOnce(M::Params) -> Result<M::Result, WireError>,
    ) -> Answer {
        match self.role {
            Role::Host => self.answer::<M>(params, act),
            Role::Client => {
                let reason = format!("only a host may call {}: it needs the host token", M::NAME);
                Err(ErrorKind::WrongRole.error(reason))
            }
        }
    }

    fn hello(&self, params: HelloParams) -> Result<HelloResult, WireError> {
        if params.protocol != PROTOCOL_VERSION {
            let reason =
                format!("this daemon speaks protocol {PROTOCOL_VERSION}: update the older side");
            let facts = Map::from_iter([("supported".to_owned(), json!([PROTOCOL_VERSION]))]);
            return Err(ErrorKind::VersionMismatch.error_with(reason, facts));
        }
        if params.path.as_ref().is_some_and(|path| !path.starts_with('/')) {
            let reason = "the path of bridge/hello must be absolute";
            return Err(ErrorKind::InvalidParams.error(reason));
        }
        let (session, rights) = self.hub.with_broker(|broker, _| {
            broker.set_name(self.peer, &params.name);
            broker.set_defaults(self.peer, params.runtime_id, params.path);
            (broker.session().clone(), broker.grant(self.peer).and_then(Grant::rights))
        });
        Ok(HelloResult {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session,
            role: self.role.name().to_owned(),
            rights,
        })
    }

    fn shut_down(&self) -> Result<Empty, WireError> {
        let allowed = self.hub.with_broker(|broker, _| match broker.grant(self.peer) {
            Some(Grant::Host(grant)) => grant.may_end_daemon(),
            Some(Grant::Client(_)) | None => false,
        });
        if !allowed {
            let reason = "this host's token does not allow it to end the daemon";
            return Err(ErrorKind::Forbidden.error(reason));
        }
        info!(host = %self.peer, "asked to end");
        self.hub.end();
        Ok(Empty {})
    }
}
