//! The log of `sandbox host` on stderr. A thread of its own writes it: if nobody reads stderr,
//! lines are dropped, and the host is not blocked. Names of tools are logged, their content never.

use std::io::{self, IsTerminal as _};
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The crates to which a plain level applies. Other libraries may log the data that they carry.
const OURS: [&str; 7] = [
    "sandbox",
    "sandbox_cells",
    "sandbox_files",
    "sandbox_host",
    "sandbox_isolation",
    "sandbox_pages",
    "sandbox_shells",
];

/// Capacity of the queue of log lines. The default of 128 000 would take 4 MiB before the first
/// line.
const QUEUED_LINES: usize = 512;

/// What to log: a level for our own crates, or directives such as `sandbox_shells=debug,warn`.
#[derive(Clone, Debug)]
pub(crate) struct LogFilter(Targets);

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(level) = text.parse::<LevelFilter>() {
            return Ok(Self(Targets::new().with_targets(OURS.map(|name| (name, level)))));
        }
        text.parse().map(Self).map_err(|_| {
            "use off, error, warn, info, debug, trace, or CRATE=LEVEL,CRATE=LEVEL".to_owned()
        })
    }
}

/// Starts logging. It stops when the guard is dropped.
pub(super) fn start(filter: &LogFilter) -> WorkerGuard {
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(QUEUED_LINES).finish(io::stderr());
    let layer = fmt::layer().with_writer(writer).with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(layer.with_filter(filter.0.clone())).init();
    guard
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_for_our_own_crates() {
        let filter: LogFilter = "info".parse().unwrap();
        assert!(filter.0.would_enable("sandbox_shells::task", &Level::INFO));
        assert!(!filter.0.would_enable("sandbox_shells::task", &Level::DEBUG));
        assert!(!filter.0.would_enable("ureq", &Level::ERROR));
        let filter: LogFilter = "sandbox_shells=debug,error".parse().unwrap();
        assert!(filter.0.would_enable("sandbox_shells", &Level::DEBUG));
        assert!(!filter.0.would_enable("sandbox_host", &Level::WARN));
        assert!("sandbox_shells=loud".parse::<LogFilter>().is_err());
    }
}
