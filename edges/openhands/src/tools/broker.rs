//! Tools of a runtime that is registered with a broker.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bridge_client::{Client, Error};
use bridge_protocol::folders::innermost;
use bridge_protocol::methods::{Empty, ListRuntimes, MethodType, RuntimeInfo, shell};
use bridge_protocol::{ErrorKind, WireError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::{Listener, Runtimes, Tools, print_params, read_result};

/// The runtime to call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Route {
    /// The runtime's id.
    pub runtime_id: Option<String>,
    /// An absolute path in the folders of the runtime.
    pub path: Option<String>,
}

impl Route {
    /// The route to the runtime with this id.
    pub fn to(runtime_id: String) -> Self {
        Self { runtime_id: Some(runtime_id), path: None }
    }
}

/// How many runtimes that have left are remembered.
const MAX_LEFT: usize = 64;

/// The runtimes that are registered with a broker.
#[derive(Debug)]
pub struct BrokerRuntimes {
    client: Client,
    /// The runtimes that were attached at the last look, then those that had left before. The
    /// broker lets requests wait for a runtime that is restarting, and so their routes must lead to it.
    seen: Mutex<Vec<RuntimeInfo>>,
}

impl BrokerRuntimes {
    /// Asks the broker, and calls tools, over this connection.
    pub fn new(client: Client) -> Self {
        Self { client, seen: Mutex::default() }
    }
}

impl Runtimes for BrokerRuntimes {
    type Tools = BrokerTools;

    async fn resolve(&self, route: Route) -> Route {
        if let Some(runtime_id) = route.runtime_id {
            return Route::to(runtime_id);
        }
        match self.client.call::<ListRuntimes>(&Empty {}, None).await {
            Ok(attached) => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                resolved(route, attached, &mut seen)
            }
            Err(error) => {
                tracing::debug!(%error, "cannot list the runtimes: the action's own call will fail");
                route
            }
        }
    }

    fn connect(&self, route: Route) -> BrokerTools {
        BrokerTools { client: self.client.clone(), route }
    }
}

/// The route by the id of the runtime that it leads to: an attached one, or else one that has left.
fn resolved(route: Route, attached: Vec<RuntimeInfo>, seen: &mut Vec<RuntimeInfo>) -> Route {
    let now = attached.len();
    let mut left = std::mem::replace(seen, attached);
    left.retain(|old| seen.iter().all(|new| new.runtime_id != old.runtime_id));
    left.truncate(MAX_LEFT);
    seen.append(&mut left);
    let found = chosen(&seen[..now], &route).or_else(|| chosen(seen, &route));
    found.map(|runtime| Route::to(runtime.runtime_id.clone())).unwrap_or(route)
}

/// Calls the tools of one runtime through a broker. Every call carries the route, and the broker
/// chooses the runtime.
#[derive(Debug, Clone)]
pub struct BrokerTools {
    client: Client,
    route: Route,
}

impl BrokerTools {
    /// Adds the route to the params. Params that name a file already have a `path`, which leads to
    /// the runtime that has the file.
    fn routed<M: MethodType>(&self, params: &M::Params) -> Result<Box<RawValue>, WireError> {
        let Route { runtime_id, path } = &self.route;
        let params = print_params::<M>(params)?;
        if runtime_id.is_none() && path.is_none() {
            return Ok(params);
        }
        let mut members: Map<String, Value> =
            serde_json::from_str(params.get()).unwrap_or_default();
        if let Some(runtime_id) = runtime_id {
            members.insert("runtimeId".into(), json!(runtime_id));
        }
        if let Some(path) = path {
            members.entry("path").or_insert_with(|| json!(path));
        }
        Ok(to_raw_value(&members).expect("a map of JSON values always prints"))
    }
}

impl Tools for BrokerTools {
    async fn call<M: MethodType>(
        &self,
        params: &M::Params,
        listener: Listener<'_>,
    ) -> Result<M::Result, WireError>
    where
        M::Params: Sync,
        M::Result: Send,
    {
        let params = self.routed::<M>(params)?;
        let mut call = self.client.call_raw(M::NAME, Some(params), None);
        let canceller = call.canceller();
        let answer = async {
            if let Some(progress) = listener.progress {
                while let Some(piece) = call.progress().await {
                    // If the receiver is gone, the caller still waits for the answer.
                    let _ = progress.send(piece).await;
                }
            }
            call.answer().await
        };
        let mut answer = std::pin::pin!(answer);
        let answer = match listener.cancellation {
            None => answer.await,
            Some(cancellation) => tokio::select! {
                answer = &mut answer => answer,
                () = cancellation.cancelled() => {
                    canceller.cancel();
                    answer.await
                }
            },
        };
        read_result::<M>(&answer.map_err(into_wire)?)
    }

    async fn directory(&self) -> Result<PathBuf, WireError> {
        let runtimes =
            self.client.call::<ListRuntimes>(&Empty {}, None).await.map_err(into_wire)?;
        match chosen(&runtimes, &self.route).and_then(|runtime| runtime.workspace_folders.first()) {
            Some(folder) => Ok(PathBuf::from(folder)),
            None => {
                // Let the broker report the error: no runtime, several runtimes, or none with this
                // id.
                self.call::<shell::List>(&Empty {}, Listener::default()).await?;
                let reason = "the runtime has no workspace folder: use absolute paths";
                Err(ErrorKind::InvalidParams.error(reason))
            }
        }
    }
}

/// The runtime that a route leads to by the rules of the broker; `None` if none or several fit.
fn chosen<'a>(runtimes: &'a [RuntimeInfo], route: &Route) -> Option<&'a RuntimeInfo> {
    let serves = |runtime: &&'a RuntimeInfo| runtime.methods.iter().any(|name| name == "file/read");
    let mut able = runtimes.iter().filter(serves);
    if let Some(id) = &route.runtime_id {
        return able.find(|runtime| runtime.runtime_id == *id);
    }
    let able = match &route.path {
        Some(path) => innermost(able, |runtime| &runtime.workspace_folders, path),
        None => able.collect(),
    };
    match able[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// Turns the error of a call into an error for the caller of the action.
fn into_wire(error: Error) -> WireError {
    let may_have_executed = || Map::from_iter([("mayHaveExecuted".to_owned(), json!(true))]);
    match error {
        Error::Rejected(error) => error,
        Error::TimedOut { .. } => {
            ErrorKind::Timeout.error_with(error.to_string(), may_have_executed())
        }
        Error::Lost { .. } | Error::Closed => {
            ErrorKind::HostGone.error_with(error.to_string(), may_have_executed())
        }
        Error::TooBig { .. } => ErrorKind::OversizedRequest.error(error.to_string()),
        Error::TooManyCalls => ErrorKind::Overloaded.error(error.to_string()),
        error => ErrorKind::InternalError.error(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(id: &str, folder: &str, method: &str) -> RuntimeInfo {
        serde_json::from_value(json!({
            "runtimeId": id, "title": "", "workspaceFolders": [folder], "methods": [method],
            "focused": false, "inFlight": 0,
        }))
        .unwrap()
    }

    fn route(runtime_id: Option<&str>, path: Option<&str>) -> Route {
        Route { runtime_id: runtime_id.map(Into::into), path: path.map(Into::into) }
    }

    #[test]
    fn a_route_leads_to_one_runtime_or_to_none() {
        let [outer, inner] = [("outer", "/w"), ("inner", "/w/in")]
            .map(|(id, folder)| runtime(id, folder, "file/read"));
        let edge = runtime("edge", "/w/in/deep", "action/execute");
        let runtimes = [outer, inner, edge];
        let id = |route: &Route| chosen(&runtimes, route).map(|runtime| &*runtime.runtime_id);
        assert_eq!(id(&route(Some("outer"), Some("/w/in"))), Some("outer"));
        assert_eq!(id(&route(Some("edge"), None)), None, "it serves no files");
        assert_eq!(id(&route(None, Some("/w/in/deep/x"))), Some("inner"));
        assert_eq!(id(&route(None, Some("/w/inner"))), Some("outer"));
        assert_eq!(id(&route(None, Some("/other"))), None);
        assert_eq!(id(&Route::default()), None, "two fit");
        let twins = [runtime("one", "/w", "file/read"), runtime("two", "/w", "file/read")];
        assert!(chosen(&twins, &route(None, Some("/w/x"))).is_none(), "both have the same folder");
        assert_eq!(chosen(&runtimes[1..], &Route::default()).unwrap().runtime_id, "inner");
    }

    #[test]
    fn a_route_still_leads_to_a_runtime_that_is_restarting() {
        let [one, two] =
            [("one", "/w"), ("two", "/v")].map(|(id, folder)| runtime(id, folder, "file/read"));
        let mut seen = Vec::new();
        let any = Route::default;
        assert_eq!(resolved(any(), vec![one.clone()], &mut seen), Route::to("one".into()));
        assert_eq!(resolved(any(), vec![], &mut seen), Route::to("one".into()), "it restarts");
        assert_eq!(
            resolved(any(), vec![two], &mut seen),
            Route::to("two".into()),
            "attached first"
        );
        let path = || route(None, Some("/w/x"));
        assert_eq!(resolved(path(), vec![], &mut seen), Route::to("one".into()));
        assert_eq!(resolved(any(), vec![], &mut seen), any(), "two have left");
        assert_eq!(resolved(path(), vec![one], &mut seen), Route::to("one".into()));
        assert_eq!(seen.len(), 2, "each runtime is remembered once");
    }
}
