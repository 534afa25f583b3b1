//! The access rules of the server.
//!
//! Clients show a key in a header, if the server has one. Web pages are never allowed: a browser
//! sends requests of a page to any local port, so a page that a person visits could run commands on
//! a server without a key. Browsers mark such requests with certain headers. A page that has
//! pointed its own domain name to this machine is recognised by that name in `Host`.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use bridge_protocol::web_page::{Host, is_from_page};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::failure::Failure;

/// The header in which clients show the key.
pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("x-session-api-key");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Paths that need no key.
const OPEN_PATHS: [&str; 2] = ["/alive", "/server_info"];

/// The rules of one server.
#[derive(Clone)]
pub struct Access {
    /// A digest, so that the comparison takes the same time for keys of any length.
    key: Option<[u8; 32]>,
    /// Who may use the server if it has no key.
    without_key: WithoutKey,
}

/// Who may use a server that has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKey {
    /// Programs on this machine.
    Local,
    /// Everybody who can reach the port.
    Everybody,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Access");
        shown.field("has_key", &self.key.is_some()).field("without_key", &self.without_key);
        shown.finish()
    }
}

impl Access {
    /// Makes the rules. An empty key means that there is no key.
    pub fn new(key: &str, without_key: WithoutKey) -> Self {
        Self { key: (!key.is_empty()).then(|| Sha256::digest(key).into()), without_key }
    }

    /// Whether these rules are acceptable for a port that other machines can reach: there is a key,
    /// or it was waived explicitly.
    pub fn is_for_others(&self) -> bool {
        self.key.is_some() || self.without_key == WithoutKey::Everybody
    }

    pub(super) fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Failure> {
        let forbidden = |detail: &str| Failure::new(StatusCode::FORBIDDEN, detail);
        let [origin, fetch_site] =
            [header::ORIGIN, FETCH_SITE].map(|name| headers.get(name).map(HeaderValue::as_bytes));
        if is_from_page(origin, fetch_site, &[]) {
            return Err(forbidden("web pages may not use this server"));
        }
        let Some(key) = &self.key else {
            return match headers.get(header::HOST) {
                Some(host) if !self.is_unownable_name(host) => Err(forbidden(
                    "without SESSION_API_KEY this server only accepts host names that no web page can own: set \
                     SESSION_API_KEY, and let the client show it",
                )),
                _ => Ok(()),
            };
        };
        let shown = headers.get(KEY_HEADER).map_or(&b""[..], |value| value.as_bytes());
        let shown: [u8; 32] = Sha256::digest(shown).into();
        let is_right = bool::from(shown.ct_eq(key));
        if is_right || OPEN_PATHS.contains(&path) {
            Ok(())
        } else {
            Err(forbidden("Invalid API Key"))
        }
    }
}

impl Access {
    /// Whether a web page could not own the name in `Host`: the name means this machine, or, where
    /// everybody is allowed, it is an address or a name that nobody can register
    /// (`host.docker.internal`, `box`).
    fn is_unownable_name(&self, host: &HeaderValue) -> bool {
        let everybody = self.without_key == WithoutKey::Everybody;
        host.to_str()
            .ok()
            .and_then(Host::parse)
            .is_some_and(|host| host.is_loopback() || everybody && host.is_unregistrable())
    }
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

    fn check(key: &str, path: &str, pairs: &[(&'static str, &str)], allowed: bool) {
        let result = Access::new(key, WithoutKey::Local).check(path, &headers(pairs));
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
    fn web_pages_are_refused() {
        check("", "/execute_action", &[("origin", "https://example.org")], false);
        check("", "/alive", &[("origin", "null")], false);
        check("", "/execute_action", &[("sec-fetch-site", "cross-site")], false);
        check("", "/openapi.json", &[("sec-fetch-site", "none"), ("host", "localhost:1")], true);
        let key = ("x-session-api-key", "secret");
        check("secret", "/execute_action", &[("origin", "https://example.org"), key], false);
    }

    #[test]
    fn without_a_key_only_local_names_count() {
        for host in ["localhost:3000", "127.0.0.1:3000", "127.1.2.3", "[::1]:3000", "LOCALHOST"] {
            check("", "/execute_action", &[("host", host)], true);
        }
        for host in ["example.org", "localhost.example.org:3000", "10.0.0.1:3000", "", "a b"] {
            check("", "/execute_action", &[("host", host)], false);
        }
        let key = ("x-session-api-key", "secret");
        check("secret", "/execute_action", &[("host", "box.example.org"), key], true);
    }

    #[test]
    fn a_waived_key_opens_to_everybody_but_web_pages() {
        let check = |key: &str, pairs: &[(&'static str, &str)], allowed: bool| {
            let access = Access::new(key, WithoutKey::Everybody);
            let result = access.check("/execute_action", &headers(pairs));
            assert_eq!(result.is_ok(), allowed, "{key:?} {pairs:?}: {result:?}");
        };
        for host in
            ["localhost:3000", "172.17.0.2:3000", "[fd00::1]:1", "host.docker.internal:1", "box:1"]
        {
            check("", &[("host", host)], true);
            check("", &[("host", host), ("origin", "http://localhost")], false);
            check("secret", &[("host", host)], false);
        }
        check("", &[("host", "rebound.example.org")], false);
        check("", &[("host", "internal.example.org")], false);
    }
}
