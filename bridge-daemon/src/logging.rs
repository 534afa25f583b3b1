//! The daemon's log, to stderr or a file, without lines of libraries. Requests appear with method and outcome; their
//! content and the tokens never do.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{BridgeArgs, LogFormat, LogLevel};

/// Starts logging according to the flags, until the guard is dropped. A separate thread writes the lines: if nobody
/// reads the daemon's stderr, lines are lost, but the daemon does not block.
pub fn start(args: &BridgeArgs, default: LogLevel) -> anyhow::Result<WorkerGuard> {
    let level = match args.log.unwrap_or(default) {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let (writer, colours) = match &args.log_file {
        Some(path) => {
            let file = private_files::append(path).with_context(|| {
                format!("cannot write the log to {}: choose another --log-file", path.display())
            })?;
            (by_a_thread(file), false)
        }
        None => (by_a_thread(io::stderr()), io::stderr().is_terminal()),
    };
    let (writer, guard) = writer;
    let layer = fmt::layer().with_writer(writer).with_ansi(colours).with_target(false);
    let layer = match args.log_format {
        LogFormat::Human => layer.boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    // Libraries are left out: they may log the content of messages.
    let ours = Targets::new().with_targets(["bridge_daemon", "listener"].map(|name| (name, level)));
    tracing_subscriber::registry().with(layer.with_filter(ours)).init();
    Ok(guard)
}

/// Size of the queue of log lines, enough for a burst. The default of 128 000 would take 4 MiB before the first line.
const QUEUED_LINES: usize = 512;

fn by_a_thread(target: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default().buffered_lines_limit(QUEUED_LINES).finish(target)
}
