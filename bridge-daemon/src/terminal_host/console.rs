//! Shows messages to the person at the terminal, and asks questions.
//!
//! Messages go to stderr, so that they do not mix with the program's own output. Control characters are made visible: a
//! text from elsewhere must not move the cursor or change the title of the terminal.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use bridge_protocol::methods::{MessageLevel, ShowMessageParams, ShowMessageResult};
use bridge_protocol::text::visible;
use process_identity::register_readable;
use rustix::fs::OFlags;
use tokio::sync::Mutex;

/// Maximum length of a person's answer.
const LINE_BYTES: usize = 64 * 1024;

/// Keeps messages in the order in which they came.
static PRINTING: Mutex<()> = Mutex::const_new(());
/// Allows one question at a time. Messages do not wait for its answer.
static ASKING: Mutex<()> = Mutex::const_new(());

/// Shows a message. If it has buttons and a person is at the terminal, waits for the choice.
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

/// Whether a person is at a terminal that the daemon may use.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks the person and returns one line. Returns `None` at end of file, or without a terminal.
pub async fn ask(question: &str) -> Option<String> {
    let _turn = ASKING.lock().await;
    // The terminal is opened again, so that making it non-blocking does not affect the program's stdin.
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
    // In one write, so that it does not mix with lines of the program. In another thread, because a pager that nobody
    // scrolls must not block the daemon.
    let write = move || io::stderr().write_all(line.as_bytes());
    // If stderr cannot be written, there is nowhere left to show the message.
    let _ = tokio::task::spawn_blocking(write).await;
}
