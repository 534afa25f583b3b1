//! How a process has ended, in words for logs and messages.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use signal_hook::low_level::signal_name;

/// `exit code 3`, or `killed by signal 9 (SIGKILL)`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        // Only stopped processes have neither, and those are not waited for.
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_signals_are_named() {
        let words = |raw: i32| describe(ExitStatus::from_raw(raw));
        assert_eq!(words(0), "exit code 0");
        assert_eq!(words(3 << 8), "exit code 3");
        assert_eq!(words(9), "killed by signal 9 (SIGKILL)");
        assert_eq!(words(40), "killed by signal 40");
    }
}
