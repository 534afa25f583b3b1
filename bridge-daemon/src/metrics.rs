//! Metrics for `GET /metrics`, in the text format of Prometheus.

use std::borrow::Cow;
use std::iter::successors;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use bridge_protocol::Method;
use bridge_protocol::methods::{RequestRecord, StatusResult};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use rustc_hash::FxHashMap;

/// Counts the requests that the broker reports. Other metrics are taken from [`StatusResult`] when they are read.
#[derive(Debug)]
pub struct Metrics {
    /// Not a [`Family`], whose lookup is slower.
    requests: Mutex<FxHashMap<RequestLabels, u64>>,
    wait: Histogram,
    host: Histogram,
    refused: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: MethodLabel,
    outcome: Cow<'static, str>,
}

/// A method of the catalogue, or `other`: names that clients choose must not become labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MethodLabel(Option<Method>);

impl EncodeLabelValue for MethodLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.map_or("other", Method::name).encode(encoder)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        // From 0.1 ms to about 100 s. Not by the library's function: it alone would load the mathematical library,
        // which takes half a megabyte in each daemon.
        let buckets = || successors(Some(0.0001), |bucket| Some(bucket * 4.0)).take(11);
        let histogram = || Histogram::new(buckets());
        Self {
            requests: Mutex::default(),
            wait: histogram(),
            host: histogram(),
            refused: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Counts a request that has ended.
    pub fn count(&self, record: &RequestRecord) {
        let outcome = match record.outcome.starts_with("error ") {
            true => "host error".into(),
            false => record.outcome.clone(),
        };
        let method = MethodLabel(Method::from_name(&record.method));
        *self.requests().entry(RequestLabels { method, outcome }).or_default() += 1;
        self.wait.observe(record.wait_ms / 1000.0);
        self.host.observe(record.host_ms / 1000.0);
    }

    /// Counts a connection that was refused.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of connections that were refused.
    pub fn refused_connections(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn requests(&self) -> MutexGuard<'_, FxHashMap<RequestLabels, u64>> {
        self.requests.lock().expect("no holder of this lock panics")
    }

    /// All metrics as text.
    pub fn render(&self, status: &StatusResult) -> String {
        let mut registry = Registry::with_prefix("run_bridge");
        let requests = Family::<RequestLabels, Counter>::default();
        for (labels, count) in &*self.requests() {
            requests.get_or_create(labels).inc_by(*count);
        }
        registry.register("requests", "Requests that ended", requests);
        let seconds = |registry: &mut Registry, name: &str, help: &str, metric: &Histogram| {
            registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
        };
        seconds(&mut registry, "wait", "Time that requests waited for a host", &self.wait);
        seconds(&mut registry, "host", "Time that hosts took", &self.host);
        for (name, help, value) in [
            ("clients", "Connected clients", status.clients as i64),
            ("runtimes", "Registered hosts", status.runtimes.len() as i64),
            ("in_flight", "Requests that are not answered yet", status.in_flight as i64),
            ("queued_bytes", "Bytes that wait to be sent", status.queued_bytes as i64),
            ("operations", "Operations that wait for their submit", status.operations as i64),
        ] {
            registry.register(name, help, ConstGauge::new(value));
        }
        for (name, value) in &status.counters {
            let help = format!("Counter {name} of bridge/status");
            registry.register(snake_case(name), help, ConstCounter::new(*value));
        }
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a String cannot fail");
        text
    }
}

/// `lateAnswers` becomes `counter_late_answers`. The prefix avoids a conflict with the other metrics.
fn snake_case(name: &str) -> String {
    let mut snake = String::from("counter_");
    for char in name.chars() {
        if char.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(char.to_ascii_lowercase());
    }
    snake
}
