//! Tools for tests, with answers that the test provides.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bridge_protocol::WireError;
use bridge_protocol::methods::MethodType;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::{Listener, Tools};

/// Expects certain calls in a certain order, and gives each of them the answer of the test.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeTools {
    steps: Arc<Mutex<VecDeque<Step>>>,
    /// The params of the calls so far.
    calls: Arc<Mutex<Vec<Value>>>,
}

#[derive(Debug)]
struct Step {
    method: &'static str,
    progress: Vec<Value>,
    /// `None` if the call is never answered.
    answer: Option<Result<Value, WireError>>,
}

impl FakeTools {
    /// Expects a call of this tool, which gets this answer.
    pub(crate) fn expect<M: MethodType>(&self, answer: Value) {
        self.add::<M>(Vec::new(), Some(Ok(answer)));
    }

    /// Expects a call of this tool, which fails.
    pub(crate) fn expect_failure<M: MethodType>(&self, error: WireError) {
        self.add::<M>(Vec::new(), Some(Err(error)));
    }

    /// Expects a call of this tool, which is never answered.
    pub(crate) fn expect_endless<M: MethodType>(&self) {
        self.add::<M>(Vec::new(), None);
    }

    /// Expects a call of this tool, which gets this progress and then this answer.
    pub(crate) fn expect_stream<M: MethodType>(&self, progress: Vec<Value>, answer: Value) {
        self.add::<M>(progress, Some(Ok(answer)));
    }

    fn add<M: MethodType>(&self, progress: Vec<Value>, answer: Option<Result<Value, WireError>>) {
        self.steps.lock().unwrap().push_back(Step { method: M::NAME, progress, answer });
    }

    /// The params of the calls since the last check. Fails if an expected call is missing.
    pub(crate) fn calls(&self) -> Vec<Value> {
        assert!(self.steps.lock().unwrap().is_empty(), "expected more calls: {:?}", self.steps);
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl Tools for FakeTools {
    async fn call<M: MethodType>(
        &self,
        params: &M::Params,
        listener: Listener<'_>,
    ) -> Result<M::Result, WireError>
    where
        M::Params: Sync,
        M::Result: Send,
    {
        let params = serde_json::to_value(params).unwrap();
        let step = self.steps.lock().unwrap().pop_front();
        let step = step.unwrap_or_else(|| panic!("unexpected: {} {params}", M::NAME));
        assert_eq!(step.method, M::NAME, "{params}");
        self.calls.lock().unwrap().push(params);
        if let Some(progress) = listener.progress {
            for piece in &step.progress {
                progress.send(to_raw_value(piece).unwrap()).await.unwrap();
            }
        }
        match step.answer {
            Some(answer) => Ok(serde_json::from_value(answer?).unwrap()),
            None => std::future::pending().await,
        }
    }

    async fn directory(&self) -> Result<PathBuf, WireError> {
        Ok(PathBuf::from("/work"))
    }
}
