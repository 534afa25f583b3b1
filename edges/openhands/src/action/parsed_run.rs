//! One action as a conversation sees it: the text, its meaning, and how long to wait.

use std::time::Duration;

use bridge_protocol::methods::shell::WaitOptions;

use super::{Outcome, Run, Watch, agent_shell::LINES};

/// Bytes of output that an observation for a program shows.
const HIDDEN_BYTES: u64 = 64 << 20;
/// How long to wait for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// With silence. Not for commands that block.
    pub(super) quiet: Duration,
    /// In any case.
    pub(super) limit: Option<Duration>,
}

/// One action.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    /// The action.
    pub(super) run: &'a Run,
    /// The command without the blanks around it.
    pub(super) text: &'a str,
    /// The control key that the text means.
    pub(super) key: Option<char>,
    /// How long to wait.
    pub(super) patience: Patience,
    /// How it is watched.
    pub(super) watch: Watch<'a>,
}

impl<'a> Ask<'a> {
    pub(super) fn new(run: &'a Run, patience: Patience, watch: Watch<'a>) -> Self {
        let text = run.command.trim();
        Self { run, text, key: control_key(text), patience, watch }
    }

    /// How a command that is not whole stands.
    pub(super) fn unfinished(&self) -> Outcome {
        Outcome::Unfinished((!self.run.blocking).then_some(self.patience.quiet))
    }

    /// How long a tool waits for the command, and how much of its output it shows.
    pub(super) fn wait_options(&self) -> WaitOptions {
        let quiet = (!self.run.blocking).then_some(self.patience.quiet);
        let (lines, bytes) = match self.run.hidden {
            true => (u32::MAX as usize, Some(HIDDEN_BYTES)),
            false => (LINES, None),
        };
        WaitOptions {
            quiet_ms: quiet.map(milliseconds),
            limit_ms: self.patience.limit.map(milliseconds),
            stream: self.watch.output.is_some(),
            output_lines: Some(lines),
            output_bytes: bytes,
            ..WaitOptions::default()
        }
    }
}

/// A duration as it travels.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// `C-c` and the like: exactly three characters.
fn control_key(text: &str) -> Option<char> {
    let mut rest = text.strip_prefix("C-")?.chars();
    rest.next()
        .filter(|key| key.is_ascii_alphabetic() && rest.next().is_none())
        .map(|key| key.to_ascii_lowercase())
}

/// The terminal shows what was typed; the agent knows it already.
pub(super) fn without_echo(content: String, input: &str) -> String {
    match content.trim_start().strip_prefix(input) {
        Some(rest) if !input.is_empty() => rest.trim_start_matches([' ', '\n']).to_owned(),
        _ => content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_characters_are_a_key() {
        assert_eq!(control_key("C-c"), Some('c'));
        assert_eq!(control_key("C-Z"), Some('z'));
        for text in ["C-", "C-cc", "c-c", "C-1", "Enter", "Up", "C- "] {
            assert_eq!(control_key(text), None, "{text}");
        }
    }

    #[test]
    fn the_echo_is_removed_if_it_comes_first() {
        assert_eq!(without_echo("John\nHello John".into(), "John"), "Hello John");
        assert_eq!(without_echo("Name: John\nHello".into(), "John"), "Name: John\nHello");
        assert_eq!(without_echo("  x".into(), ""), "  x");
    }
}
