//! Messages to, and questions for, the person at the terminal.
//!
//! Messages go to stderr, so that the program's own output stays clean. Control characters are made
//! visible: a text from elsewhere must not move the cursor or retitle the window.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use bridge_protocol::methods::{MessageLevel, ShowMessageParams, ShowMessageResult};
use bridge_protocol::text::visible;
use process_identity::register_readable;
use rustix::fs::OFlags;
use tokio::sync::Mutex;

/// Longest answer of a person.
const LINE_BYTES: usize = 64 * 1024;

/// Messages in the order in which they came.
static PRINTING: Mutex<()> = Mutex::const_new(());
/// One question at a time; messages do not wait for its answer.
static ASKING: Mutex<()> = Mutex::const_new(());

/// Shows a message. With buttons, and with somebody there to press one, waits for the choice.
pub async fn show(params: ShowMessageParams) -> ShowMessageResult {
    print_message(params.level, &params.message).await;
    if params.buttons.is_empty() || !is_attended() {
        return ShowMessageResult::default();
    }
    let numbered = params.buttons.iter().enumerate();
    let offers: Vec<_> =
        numbered.map(|(n, button)| format!("{}) {}", n + 1, visible(button))).collect();
    let answer = ask(&format!("  {}  ", offers.join("  "))).await.unwrap_or_default();
    let by_number =
        answer.parse::<usize>().ok().and_then(|n| params.buttons.get(n.checked_sub(1)?));
    let by_name = params.buttons.iter().find(|button| button.eq_ignore_ascii_case(&answer));
    ShowMessageResult { choice: by_number.or(by_name).cloned() }
}

/// Whether a person sits at a terminal that we may use.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks the person and returns one line; `None` at end of file, or without a terminal.
pub async fn ask(question: &str) -> Option<String> {
    let _turn = ASKING.lock().await;
    // Opened anew: it can be made non-blocking without doing so to the program's own stdin.
    let mut options = std::fs::OpenOptions::new();
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    options.read(true).write(true).custom_flags(flags);
    let mut terminal = options.open("/dev/tty").ok()?;
    terminal.write_all(question.as_bytes()).ok()?;
    let terminal = register_readable(terminal.into()).ok()?;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < LINE_BYTES {
        let mut ready = terminal.readable().await.ok()?;
        let mut chunk = [0; 1024];
        match ready.try_io(|tty| rustix::io::read(tty.as_fd(), &mut chunk).map_err(Into::into)) {
            Ok(Ok(0)) if line.is_empty() => return None,
            Ok(Ok(0)) => break,
            Ok(Ok(count)) => line.extend_from_slice(&chunk[..count]),
            Ok(Err(_)) => return None,
            Err(_not_ready) => {}
        }
    }
    Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}

async fn print_message(level: MessageLevel, message: &str) {
    let (name, colour) = match level {
        MessageLevel::Info => ("info", "36"),
        MessageLevel::Warning => ("warning", "33"),
        MessageLevel::Error => ("error", "31"),
    };
    let message = visible(message);
    let line = match io::stderr().is_terminal() {
        true => format!("\x1b[{colour}m[{name}]\x1b[0m {message}\n"),
        false => format!("[{name}] {message}\n"),
    };
    let _turn = PRINTING.lock().await;
    // In one write, so that lines of the program do not fall in between; and not on our own
    // thread, since a pager that nobody scrolls must not stop the bridge.
    let write = move || io::stderr().write_all(line.as_bytes());
    let _ = tokio::task::spawn_blocking(write).await;
}
