//! Tools of a runtime that is registered with a broker.

use std::path::PathBuf;

use bridge_client::{Client, Error};
use bridge_protocol::folders::innermost;
use bridge_protocol::methods::{Empty, ListRuntimes, MethodType, RuntimeInfo, shell};
use bridge_protocol::{ErrorKind, WireError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::{Listener, Tools};

/// The runtime to call, as the caller of an action named it. The broker resolves it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Route {
    /// The runtime's id.
    pub runtime_id: Option<String>,
    /// An absolute path in the folders of the runtime.
    pub path: Option<String>,
}

/// Calls the tools of one runtime through a broker. Every call carries the route, and the broker
/// chooses the runtime each time: a runtime that was the only one may no longer be.
#[derive(Debug, Clone)]
pub struct BrokerTools {
    client: Client,
    route: Route,
}

impl BrokerTools {
    /// Calls over this connection.
    pub fn new(client: Client, route: Route) -> Self {
        Self { client, route }
    }

    /// Adds the route to the params. Params that name a file already have a `path`, which leads to
    /// the runtime that has the file.
    fn routed<M: MethodType>(
        &self,
        params: &M::Params,
    ) -> Result<Box<RawValue>, serde_json::Error> {
        let Route { runtime_id, path } = &self.route;
        if runtime_id.is_none() && path.is_none() {
            return to_raw_value(params);
        }
        let mut members: Map<String, Value> = match serde_json::to_value(params)? {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        if let Some(runtime_id) = runtime_id {
            members.insert("runtimeId".into(), json!(runtime_id));
        }
        if let Some(path) = path {
            members.entry("path").or_insert_with(|| json!(path));
        }
        to_raw_value(&members)
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
        let params = self.routed::<M>(params).map_err(|error| {
            ErrorKind::InvalidParams
                .error(format!("cannot print the params of {}: {error}", M::NAME))
        })?;
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
        let answer = answer.map_err(into_wire)?;
        serde_json::from_str(answer.get()).map_err(|error| {
            ErrorKind::BadHostResponse.error(format!("the answer to {} is wrong: {error}", M::NAME))
        })
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
}
