//! The access rules of the server.
//!
//! Clients show a key in a header, unless the server was started without one on purpose. Web pages
//! are never allowed: a browser sends requests of a page to any local port, so a page that a person
//! visits could run commands on a server without a key. Browsers mark such requests with certain headers. A page that has
//! pointed its own domain name to this machine is recognised by that name in `Host`.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bridge_protocol::web_page::{Host, is_from_page};
use listener::Refusal;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The header in which clients show the key.
pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("x-session-api-key");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Paths that need no key.
const OPEN_PATHS: [&str; 2] = ["/alive", "/server_info"];

/// The rules of one server.
#[derive(Clone)]
pub struct Access {
    /// A digest, so that the comparison takes the same time for keys of any length. `None` if
    /// everybody who can reach the port may use the server.
    key: Option<[u8; 32]>,
}

/// Whom a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visitor {
    /// A client that may use the server.
    Client,
    /// Somebody without the key, who may only ask whether the server is alive.
    Stranger,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("has_key", &self.key.is_some()).finish()
    }
}

impl Access {
    /// The rules of a server whose clients show this key.
    pub fn with_key(key: &str) -> Self {
        Self { key: Some(Sha256::digest(key).into()) }
    }

    /// The rules of a server that everybody may use who can reach its port, except for web pages.
    pub fn without_key() -> Self {
        Self { key: None }
    }

    pub(super) fn check(&self, path: &str, headers: &HeaderMap) -> Result<Visitor, Refusal> {
        let [origin, fetch_site] =
            [header::ORIGIN, FETCH_SITE].map(|name| headers.get(name).map(HeaderValue::as_bytes));
        if is_from_page(origin, fetch_site, &[]) {
            return Err(Refusal::new(403, "web pages may not use this server"));
        }
        let Some(key) = &self.key else {
            return match headers.get(header::HOST) {
                Some(host) if !is_unownable_name(host) => Err(Refusal::new(
                    403,
                    "without a key this server only accepts host names that no web page can own: set \
                     SESSION_API_KEY, and let the client show it",
                )),
                _ => Ok(Visitor::Client),
            };
        };
        let shown = headers.get(KEY_HEADER).map_or(&b""[..], |value| value.as_bytes());
        let shown: [u8; 32] = Sha256::digest(shown).into();
        if bool::from(shown.ct_eq(key)) {
            Ok(Visitor::Client)
        } else if OPEN_PATHS.contains(&path) {
            Ok(Visitor::Stranger)
        } else {
            Err(Refusal::guess(403, "Invalid API Key"))
        }
    }
}

/// Whether a web page could not own the name in `Host`: it is an address, or a name that nobody can
/// register (`localhost`, `host.docker.internal`, `box`).
fn is_unownable_name(host: &HeaderValue) -> bool {
    host.to_str().ok().and_then(Host::parse).is_some_and(|host| host.is_unregistrable())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn access(key: &str) -> Access {
        if key.is_empty() { Access::without_key() } else { Access::with_key(key) }
    }

    fn check(key: &str, path: &str, pairs: &[(&'static str, &str)], allowed: bool) {
        let result = access(key).check(path, &headers(pairs));
        assert_eq!(result.is_ok(), allowed, "{key:?} {path} {pairs:?}: {result:?}");
    }

    #[test]
    fn the_key_opens() {
        check("secret", "/list_files", &[("x-session-api-key", "secret")], true);
        check("secret", "/list_files", &[("x-session-api-key", "secret ")], false);
        check("secret", "/list_files", &[("x-session-api-key", "")], false);
        check("secret", "/list_files", &[], false);
        check("secret", "/nowhere", &[], false);
        check("secret", "/alive", &[], true);
        check("secret", "/server_info", &[("host", "example.org")], true);
        check("secret", "/alive/", &[], false);
        check("", "/list_files", &[], true);
    }

    #[test]
    fn who_shows_no_key_is_a_stranger() {
        let key = headers(&[("x-session-api-key", "secret")]);
        for (key, headers, expected) in [
            ("secret", &key, Visitor::Client),
            ("secret", &headers(&[]), Visitor::Stranger),
            ("", &headers(&[]), Visitor::Client),
        ] {
            assert_eq!(access(key).check("/alive", headers), Ok(expected), "{headers:?}");
        }
        let wrong = access("secret").check("/list_files", &headers(&[]));
        assert!(wrong.unwrap_err().is_guess, "the answer is delayed");
    }

    #[test]
    fn web_pages_are_refused() {
        check("", "/execute_action", &[("origin", "https://example.org")], false);
        check("", "/alive", &[("origin", "null")], false);
        check("", "/execute_action", &[("sec-fetch-site", "cross-site")], false);
        check("", "/openapi.json", &[("sec-fetch-site", "none"), ("host", "localhost:1")], true);
        let key = ("x-session-api-key", "secret");
        check("secret", "/execute_action", &[("origin", "https://example.org"), key], false);
    }

    #[test]
    fn without_a_key_no_name_counts_that_a_page_can_own() {
        for host in [
            "localhost:3000",
            "127.0.0.1:3000",
            "127.1.2.3",
            "[::1]:3000",
            "LOCALHOST",
            "172.17.0.2:3000",
            "[fd00::1]:1",
            "host.docker.internal:1",
            "box:1",
        ] {
            check("", "/execute_action", &[("host", host)], true);
            check("", "/execute_action", &[("host", host), ("origin", "http://localhost")], false);
            check("secret", "/execute_action", &[("host", host)], false);
        }
        for host in ["example.org", "localhost.example.org:3000", "internal.example.org", "", "a b"]
        {
            check("", "/execute_action", &[("host", host)], false);
        }
        let key = ("x-session-api-key", "secret");
        check("secret", "/execute_action", &[("host", "box.example.org"), key], true);
    }
}
