//! One run action with its meaning and its limits.

use std::time::Duration;

use bridge_protocol::methods::shell::WaitOptions;

use super::{Outcome, Run, Watch, agent_shell::LINES};

/// Limit for the bytes of output in an observation that only a program reads.
const HIDDEN_BYTES: u64 = 64 << 20;

/// How long to wait for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitLimits {
    /// How long it may print nothing. Does not apply to blocking commands.
    pub(super) quiet: Duration,
    /// How long to wait in any case.
    pub(super) limit: Option<Duration>,
}

/// One run action.
#[derive(Clone, Copy)]
pub(super) struct ParsedRun<'a> {
    /// The action as it came.
    pub(super) run: &'a Run,
    /// The command without surrounding blanks.
    pub(super) text: &'a str,
    /// The control key, if the text names one.
    pub(super) key: Option<char>,
    /// How long to wait.
    pub(super) limits: WaitLimits,
    /// How the caller follows the action.
    pub(super) watch: Watch<'a>,
}

impl<'a> ParsedRun<'a> {
    pub(super) fn new(run: &'a Run, limits: WaitLimits, watch: Watch<'a>) -> Self {
        let text = run.command.trim();
        Self { run, text, key: control_key(text), limits, watch }
    }

    /// The outcome of a command that is incomplete.
    pub(super) fn unfinished(&self) -> Outcome {
        Outcome::Unfinished((!self.run.blocking).then_some(self.limits.quiet))
    }

    /// The wait limits, and how much output to return.
    pub(super) fn wait_options(&self) -> WaitOptions {
        let quiet = (!self.run.blocking).then_some(self.limits.quiet);
        let (lines, bytes) = match self.run.hidden {
            true => (u32::MAX as usize, Some(HIDDEN_BYTES)),
            false => (LINES, None),
        };
        WaitOptions {
            quiet_ms: quiet.map(milliseconds),
            limit_ms: self.limits.limit.map(milliseconds),
            stream: self.watch.output.is_some(),
            output_lines: Some(lines),
            output_bytes: bytes,
            ..WaitOptions::default()
        }
    }
}

/// A duration in the unit of the wire.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The key of `C-c` and similar texts, which have exactly three characters.
fn control_key(text: &str) -> Option<char> {
    let mut rest = text.strip_prefix("C-")?.chars();
    rest.next()
        .filter(|key| key.is_ascii_alphabetic() && rest.next().is_none())
        .map(|key| key.to_ascii_lowercase())
}

/// Removes the echo of the input at the beginning: the agent knows what it typed.
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
