//! The daemon's own methods, `bridge/*` and `runtime/*`, as a jsonrpsee method table.
//!
//! The table is looked up directly instead of through jsonrpsee's server: so each call knows its
//! connection and role, and the answer is printed in the caller's dialect under its own id.

use std::sync::Arc;

use bridge_protocol::methods::{
    Empty, GetRuntime, Hello, HelloParams, HelloResult, ListRuntimes, MethodType, Ping, Register,
    RegisterParams, RequestRecord, RuntimeRef, Shutdown, Status, Tail, Unregister, Update,
    UpdateParams,
};
use bridge_protocol::text::brief;
use bridge_protocol::{
    ErrorKind, Message, Outcome, PROTOCOL_VERSION, WireError, limits::MESSAGE_BYTES,
};
use jsonrpsee::core::server::MethodCallback;
use jsonrpsee::types::{Id, Params};
use jsonrpsee::{Extensions, Methods, RpcModule};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, json};
use tracing::info;

use crate::broker::{PeerId, Role};
use crate::hub::Hub;

/// Who calls; travels in jsonrpsee's extensions.
#[derive(Clone)]
struct Caller {
    hub: Arc<Hub>,
    peer: PeerId,
    role: Role,
}

/// All methods.
pub fn table() -> Methods {
    let mut table = RpcModule::new(());
    add::<Hello>(&mut table, None, hello);
    add::<Ping>(&mut table, None, |_, _| Ok(Empty {}));
    add::<Status>(&mut table, None, |caller, _| Ok(caller.hub.status()));
    add::<Tail>(&mut table, None, |caller, _| {
        caller.hub.with_broker(|broker, _| broker.tail(caller.peer));
        Ok(Empty {})
    });
    add::<Shutdown>(&mut table, Some(Role::Host), |caller, _| {
        info!(host = %caller.peer, "asked to end");
        caller.hub.end();
        Ok(Empty {})
    });
    add::<Register>(&mut table, Some(Role::Host), |caller, params: RegisterParams| {
        let registered =
            caller.hub.with_broker(|broker, now| broker.register(caller.peer, params, now))?;
        info!(host = %caller.peer, runtime = registered.runtime_id, "registered");
        Ok(registered)
    });
    add::<Update>(&mut table, Some(Role::Host), |caller, params: UpdateParams| {
        caller.hub.with_broker(|broker, now| broker.update(caller.peer, params, now))?;
        Ok(Empty {})
    });
    add::<Unregister>(&mut table, Some(Role::Host), |caller, _| {
        caller.hub.with_broker(|broker, now| broker.detach(caller.peer, now));
        Ok(Empty {})
    });
    add::<ListRuntimes>(&mut table, None, |caller, _| {
        Ok(caller.hub.with_broker(|broker, _| broker.runtimes()))
    });
    add::<GetRuntime>(&mut table, None, |caller, params: RuntimeRef| {
        caller.hub.with_broker(|broker, _| broker.runtime(&params.runtime_id))
    });
    table.into()
}

/// Calls a method of the table. One that is not there is an error like any other.
pub fn call(
    hub: &Arc<Hub>,
    methods: &Methods,
    peer: PeerId,
    role: Role,
    name: &str,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, WireError> {
    let Some(MethodCallback::Sync(method)) = methods.method(name) else {
        return Err(ErrorKind::MethodNotFound.error(format!("Unknown request type: {name}")));
    };
    let mut extensions = Extensions::new();
    extensions.insert(Caller { hub: Arc::clone(hub), peer, role });
    let params = Params::new(Some(params.map_or("{}", RawValue::get)));
    let response = method(Id::Number(0), params, MESSAGE_BYTES, extensions);
    // jsonrpsee prints whole answers; ours has another id and perhaps another dialect.
    match Message::parse(response.as_json().get()) {
        Ok(Message::Response(response)) => match response.outcome {
            Outcome::Success(result) => Ok(result.to_owned()),
            Outcome::Failure(error) => Err(serde_json::from_str(error.get())
                .unwrap_or_else(|_| ErrorKind::InternalError.error("unreadable error"))),
            Outcome::Malformed => Err(ErrorKind::InternalError.error("malformed answer")),
        },
        _ => Err(ErrorKind::InternalError.error("no answer")),
    }
}

/// One line for each request that has ended; never its content.
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

/// Enters one method: reads its params, checks the role, calls it.
fn add<M: MethodType>(
    table: &mut RpcModule<()>,
    only: Option<Role>,
    act: impl Fn(&Caller, M::Params) -> Result<M::Result, WireError> + Send + Sync + 'static,
) where
    M::Params: DeserializeOwned,
    M::Result: Clone + 'static,
{
    let method = move |params: Params<'_>, _: &(), extensions: &Extensions| {
        let caller: &Caller = extensions.get().expect("put there by `call`");
        if only.is_some_and(|role| role != caller.role) {
            let reason = format!("only a host may call {}: it needs the host token", M::NAME);
            return Err(ErrorKind::WrongRole.error(reason));
        }
        let params = params.parse().map_err(|error: WireError| {
            let detail = error.data().map(RawValue::get).unwrap_or_default();
            ErrorKind::InvalidParams.error(format!(
                "wrong params for {}: {}",
                M::NAME,
                brief(detail)
            ))
        })?;
        act(caller, params)
    };
    table.register_method(M::NAME, method).expect("each method is entered once");
}

fn hello(caller: &Caller, params: HelloParams) -> Result<HelloResult, WireError> {
    if params.protocol != PROTOCOL_VERSION {
        let reason =
            format!("this daemon speaks protocol {PROTOCOL_VERSION}: update the older side");
        let facts = Map::from_iter([("supported".to_owned(), json!([PROTOCOL_VERSION]))]);
        return Err(ErrorKind::VersionMismatch.error_with(reason, facts));
    }
    let session = caller.hub.with_broker(|broker, _| {
        broker.set_name(caller.peer, &params.name);
        broker.session().clone()
    });
    Ok(HelloResult {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session,
        rights: None,
        role: caller.role.name().to_owned(),
    })
}
