//! The gate: no request head, however odd, is admitted without a token.

#![no_main]

use std::sync::{Arc, LazyLock};

use bridge_daemon::broker::{Grant, HostGrant};
use bridge_daemon::gate::{Admission, Gate, Head, Route, Tokens, Transport};
use bridge_protocol::{Rights, Secret};
use libfuzzer_sys::fuzz_target;

const HOST_TOKEN: &str = "b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0";

/// The gate whose tokens are in the corpus.
static OURS: LazyLock<Gate> = LazyLock::new(|| gate([0xc1; 32], [0xb0; 32]));
/// A gate whose tokens are in no input, so that it must not admit any.
static FOREIGN: LazyLock<Gate> = LazyLock::new(|| gate([0x17; 32], [0x2f; 32]));

fn gate(client: [u8; 32], host: [u8; 32]) -> Gate {
    let tokens = Tokens::default();
    for (secret, grant) in [
        (client, Grant::Client(Rights::ALL)),
        (host, Grant::Host(HostGrant::general([], &[]).into())),
    ] {
        tokens.add(Secret::from_random(secret), grant).expect("two tokens fit");
    }
    Gate {
        tokens: Arc::new(tokens),
        session: "s1".parse().expect("a session id"),
        allowed_origins: vec!["https://allowed.example".into()],
        query_token: true,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(head)) = Head::parse(bytes) else { return };
    assert!(head.length <= bytes.len());
    let alone = Head::parse(&bytes[..head.length])
        .ok()
        .flatten()
        .expect("a head is complete without the bytes after it");
    for transport in [Transport::Tcp { port: 4000 }, Transport::Unix] {
        let foreign = FOREIGN.admit(&head, transport);
        assert!(
            matches!(foreign, Ok(Admission::Http(Route::Health)) | Err(_)),
            "{foreign:?} without a token"
        );
        let ours = OURS.admit(&head, transport);
        assert_eq!(
            ours,
            OURS.admit(&alone, transport),
            "bytes after the head changed the decision"
        );
        if let Ok(Admission::WebSocket { grant: Grant::Host(_), .. }) = ours {
            let shown = bytes[..head.length].windows(HOST_TOKEN.len());
            assert!(
                shown.into_iter().any(|part| part == HOST_TOKEN.as_bytes()),
                "admitted as a host without the host token"
            );
        }
    }
});
