//! Counts the answers that a relay still waits for. No I/O, no clock.

use std::time::Duration;

use bridge_protocol::Message;
use bridge_protocol::limits::TIMEOUT_DEFAULT;
use bridge_protocol::timeout::{Allowance, RoutingParams};
use tokio::time::Instant;

/// How much later than its deadline the daemon's own answer may arrive.
const GRACE: Duration = Duration::from_secs(1);

/// A count of outstanding answers. Ids are of no use: they may repeat in the bridge dialect, and a text that is not a
/// message is answered without one. But each text gets exactly one answer.
#[derive(Debug, Default)]
pub struct Outstanding {
    count: usize,
    last_deadline: Option<Instant>,
}

impl Outstanding {
    /// Records a text that is sent to the daemon.
    pub fn sent(&mut self, text: &str, now: Instant) {
        let allowance = match Message::parse(text) {
            Ok(Message::Request(request)) => {
                let timeout = RoutingParams::read(request.params).ok().and_then(|own| own.timeout);
                Allowance::new(timeout, &request.method)
            }
            // The daemon answers an unreadable text, too, at once.
            Err(_) => Allowance::Chosen(Duration::ZERO),
            Ok(Message::Notification(_) | Message::DapEvent(_) | Message::Response(_)) => return,
        };
        self.count += 1;
        self.last_deadline = self.last_deadline.max(Some(now + allowance.duration() + GRACE));
    }

    /// Records a text from the daemon. Progress shows that work goes on, so it restarts the timeout.
    pub fn received(&mut self, text: &str, now: Instant) {
        match Message::parse(text) {
            Ok(Message::Response(_)) => self.count = self.count.saturating_sub(1),
            Ok(Message::Notification(notice)) if notice.method == "$/progress" => {
                self.last_deadline = self.last_deadline.max(Some(now + TIMEOUT_DEFAULT + GRACE));
            }
            _ => {}
        }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// When the last answer is due.
    pub fn last_deadline(&self) -> Instant {
        self.last_deadline.unwrap_or_else(Instant::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_daemon_answers_counts_once() {
        let mut outstanding = Outstanding::default();
        let now = Instant::now();
        for text in [
            r#"{"jsonrpc":"2.0","id":"a","method":"vscode/chat"}"#,
            r#"{"id":1,"type":"vscode/chat"}"#,
            r#"{"id":1,"type":"vscode/chat"}"#,
            "nonsense",
        ] {
            outstanding.sent(text, now);
        }
        for text in [
            r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"a"}}"#,
            r#"{"type":"dapEvent","event":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            outstanding.sent(text, now);
        }
        assert_eq!(outstanding.count(), 4);
        outstanding.received(
            r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":"a","value":1}}"#,
            now,
        );
        assert_eq!(outstanding.count(), 4);
        for text in [
            r#"{"jsonrpc":"2.0","id":"a","result":{}}"#,
            r#"{"id":1,"success":true,"result":{}}"#,
            r#"{"id":1,"success":false,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"once more"}}"#,
        ] {
            outstanding.received(text, now);
        }
        assert_eq!(outstanding.count(), 0);
    }

    #[test]
    fn the_last_deadline_is_that_of_the_slowest() {
        let mut outstanding = Outstanding::default();
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms) + GRACE;
        outstanding.sent(r#"{"jsonrpc":"2.0","id":1,"method":"execute_command"}"#, now);
        assert_eq!(outstanding.last_deadline(), after(10_000));
        outstanding
            .sent(r#"{"jsonrpc":"2.0","id":2,"method":"m","params":{"timeout":90000}}"#, now);
        outstanding.sent(r#"{"jsonrpc":"2.0","id":3,"method":"m"}"#, now);
        assert_eq!(outstanding.last_deadline(), after(90_000));
        let progress = r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":3,"value":1}}"#;
        outstanding.received(progress, now + Duration::from_secs(80));
        assert_eq!(outstanding.last_deadline(), after(110_000));
    }
}
