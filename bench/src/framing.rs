//! The format of requests and replies for each arm.

use anyhow::{Result, ensure};

/// The message format of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Any text; the server returns the same text.
    Echo,
    /// JSON-RPC to a method that returns its params.
    JsonRpc(&'static str),
    /// JSON-RPC to a command of an editor that returns its argument.
    EditorCommand(&'static str),
    /// The bridge dialect (`type` instead of `method`), for a server without a broker.
    Typed,
    /// Socket.IO events with acknowledgements.
    SocketIo,
}

impl Framing {
    /// The text of a request.
    pub fn request(self, id: u64, payload: &str) -> String {
        match self {
            Self::Echo => format!(r#"{{"id":{id},"message":"{payload}"}}"#),
            Self::JsonRpc(method) => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"message":"{payload}"}}}}"#
            ),
            Self::EditorCommand(command) => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"vscode/executeCommand","params":{{"command":"{command}","args":["{payload}"]}}}}"#
            ),
            Self::Typed => {
                format!(r#"{{"id":{id},"type":"chat","params":{{"message":"{payload}"}}}}"#)
            }
            Self::SocketIo => format!(r#"42{id}["call",{{"message":"{payload}"}}]"#),
        }
    }

    /// The id of the request that a message answers; `None` if the message is no reply. A reply without the
    /// payload is an error.
    pub fn reply(self, text: &str, payload: &str) -> Result<Option<u64>> {
        let id = match self {
            Self::JsonRpc(_) if text.starts_with(PROGRESS) => return Ok(None),
            Self::Echo | Self::JsonRpc(_) | Self::EditorCommand(_) | Self::Typed => {
                text.split(r#""id":"#).nth(1)
            }
            Self::SocketIo => match text.strip_prefix("43") {
                Some(rest) => Some(rest),
                None => return Ok(None),
            },
        };
        let digits = id.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""));
        let carried = memchr::memmem::find(text.as_bytes(), payload.as_bytes()).is_some();
        ensure!(carried, "a reply without its payload: {}", &text[..text.len().min(200)]);
        Ok(digits.and_then(|digits| digits.parse().ok()))
    }
}

/// The beginning of a `$/progress` notification from the daemon.
const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"$/progress""#;

/// A payload that gives the whole request about this many bytes.
pub fn payload(bytes: usize) -> String {
    let envelope = Framing::JsonRpc("vscode/chat").request(1000, "").len();
    "The quick brown fox jumps over the lazy dog. "
        .chars()
        .cycle()
        .take(bytes.saturating_sub(envelope))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_no_reply_and_a_reply_must_have_the_payload() {
        let framing = Framing::JsonRpc("vscode/chat");
        let piece =
            r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":7,"value":{"text":"hi"}}}"#;
        assert_eq!(framing.reply(piece, "hi").unwrap(), None);
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"response":"hi"}}"#;
        assert_eq!(framing.reply(answer, "hi").unwrap(), Some(7));
        let other = r#"{"jsonrpc":"2.0","id":7,"result":{"response":""}}"#;
        assert!(framing.reply(other, "hi").is_err());
    }
}
