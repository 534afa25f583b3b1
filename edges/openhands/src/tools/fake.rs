//! Tools that answer as a test says.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bridge_protocol::WireError;
use bridge_protocol::methods::MethodType;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::{Listener, Tools};

/// Expects certain calls in a certain order, and answers each of them as the test said.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeTools {
    steps: Arc<Mutex<VecDeque<Step>>>,
    /// The params of the calls that have come.
    calls: Arc<Mutex<Vec<Value>>>,
}

#[derive(Debug)]
struct Step {
    method: &'static str,
    progress: Vec<Value>,
    /// None: the call is never answered.
    answer: Option<Result<Value, WireError>>,
}

impl FakeTools {
    /// The next call is of this tool, and gets this answer.
    pub(crate) fn expect<M: MethodType>(&self, answer: Value) {
        self.add::<M>(Vec::new(), Some(Ok(answer)));
    }

    /// The next call is of this tool, and fails.
    pub(crate) fn expect_failure<M: MethodType>(&self, error: WireError) {
        self.add::<M>(Vec::new(), Some(Err(error)));
    }

    /// The next call is of this tool, and is never answered.
    pub(crate) fn expect_endless<M: MethodType>(&self) {
        self.add::<M>(Vec::new(), None);
    }

    /// The next call is of this tool, and streams before it gets this answer.
    pub(crate) fn expect_stream<M: MethodType>(&self, progress: Vec<Value>, answer: Value) {
        self.add::<M>(progress, Some(Ok(answer)));
    }

    fn add<M: MethodType>(&self, progress: Vec<Value>, answer: Option<Result<Value, WireError>>) {
        self.steps.lock().unwrap().push_back(Step { method: M::NAME, progress, answer });
    }

    /// The params of the calls since the last time that a test asked. All expected calls must have come.
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
