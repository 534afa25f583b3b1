//! The envelope parser: it accepts only JSON, and the payloads that it returns are slices of the input.

#![no_main]

use bridge_protocol::{Message, Outcome};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(message) = Message::parse(text) else { return };
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        // Values that Rust cannot represent are passed on as text.
        let reason = error.to_string();
        let known = ["out of range", "surrogate", "hex escape"];
        assert!(known.iter().any(|known| reason.contains(known)), "not JSON: {reason}");
    }
    let piece = match message {
        Message::Request(request) => request.params,
        Message::Notification(notification) => notification.params,
        Message::DapEvent(event) => event.body,
        Message::Response(response) => match response.outcome {
            Outcome::Success(raw) | Outcome::Failure(raw) => Some(raw),
            Outcome::Malformed => None,
        },
    };
    if let Some(piece) = piece {
        let (whole, part) = (text.as_bytes().as_ptr_range(), piece.get().as_bytes().as_ptr_range());
        assert!(whole.start <= part.start && part.end <= whole.end, "{piece} is a copy");
    }
});
