//! Recognises requests that web pages make, from the request headers alone.
//!
//! A page that a person visits can send requests to every port of the person's machine. Every HTTP server of
//! ours refuses them by two rules. Browsers reveal a page by `Origin` or `Sec-Fetch-Site`, which a page cannot
//! change ([`is_from_page`]). A page whose own name was made to point to this machine (DNS rebinding) counts as
//! same-origin, but its name stands in `Host` ([`Host`]).

use std::net::IpAddr;

/// Whether a web page made the request: `Origin` is none of the allowed ones, or, without `Origin`, the browser
/// reports that another site made it. Values are bytes, so that a header that is no text is refused, too.
pub fn is_from_page(
    origin: Option<&[u8]>,
    fetch_site: Option<&[u8]>,
    allowed_origins: &[String],
) -> bool {
    match origin {
        Some(origin) => !allowed_origins.iter().any(|allowed| allowed.as_bytes() == origin),
        // `none` means that a person typed the address.
        None => fetch_site.is_some_and(|site| !matches!(site, b"none" | b"same-origin")),
    }
}

/// The value of a `Host` header: the name by which the client reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    name: Name<'a>,
    /// The port, if there is one.
    pub port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    Address(IpAddr),
    Domain(&'a str),
}

impl<'a> Host<'a> {
    /// Reads the value of the header. `None` if it is no name or address with an optional port.
    pub fn parse(value: &'a str) -> Option<Self> {
        let (name, rest) = match value.strip_prefix('[') {
            Some(bracketed) => {
                let (address, rest) = bracketed.split_once(']')?;
                (Name::Address(IpAddr::V6(address.parse().ok()?)), rest)
            }
            None => {
                let (name, rest) = value.split_at(value.find(':').unwrap_or(value.len()));
                (Name::parse(name)?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            None if rest.is_empty() => None,
            _ => return None,
        };
        Some(Self { name, port })
    }

    /// Whether the name can only mean this machine.
    pub fn is_loopback(&self) -> bool {
        match self.name {
            Name::Address(address) => address.is_loopback(),
            Name::Domain(name) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Whether no web page can have this name: it is an address, or a name that nobody can register
    /// (`host.docker.internal`, `box`).
    pub fn is_unregistrable(&self) -> bool {
        match self.name {
            Name::Address(_) => true,
            Name::Domain(name) => {
                !name.contains('.') || name.to_ascii_lowercase().ends_with(".internal")
            }
        }
    }
}

impl<'a> Name<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        if let Ok(address) = name.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        (!name.is_empty() && name.bytes().all(is_valid)).then_some(Self::Domain(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_recognised_by_their_origin_or_by_the_site_of_the_fetch() {
        let allowed = ["https://allowed.example".to_owned()];
        for (origin, site, is_page) in [
            (None, None, false),
            (None, Some("none"), false),
            (None, Some("same-origin"), false),
            (None, Some("same-site"), true),
            (None, Some("cross-site"), true),
            (None, Some(""), true),
            (Some("https://evil.example"), None, true),
            (Some("https://evil.example"), Some("same-origin"), true),
            (Some("null"), None, true),
            (Some(""), None, true),
            (Some("https://allowed.example"), None, false),
            // Browsers report an allowed page as cross-site, because it is.
            (Some("https://allowed.example"), Some("cross-site"), false),
            (Some("https://allowed.example.evil.example"), None, true),
        ] {
            let [origin_bytes, site_bytes] = [origin, site].map(|text| text.map(str::as_bytes));
            let found = is_from_page(origin_bytes, site_bytes, &allowed);
            assert_eq!(found, is_page, "{origin:?} {site:?}");
        }
        assert!(is_from_page(Some(b"\xff"), None, &allowed), "not even text");
    }

    #[test]
    fn names_are_told_apart() {
        for (value, port, is_loopback, is_unregistrable) in [
            ("localhost", None, true, true),
            ("LocalHost:4000", Some(4000), true, true),
            ("127.0.0.1:1", Some(1), true, true),
            ("127.1.2.3", None, true, true),
            ("[::1]:65535", Some(65535), true, true),
            ("10.0.0.1:80", Some(80), false, true),
            ("0.0.0.0", None, false, true),
            ("[fd00::1]", None, false, true),
            ("box:1", Some(1), false, true),
            ("my_box", None, false, true),
            ("Host.Docker.INTERNAL", None, false, true),
            ("internal.example", None, false, false),
            ("localhost.", None, false, false),
            ("localhost.evil.example", None, false, false),
            ("127.0.0.1.evil.example:4000", Some(4000), false, false),
        ] {
            let host = Host::parse(value).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(host.port, port, "{value}");
            assert_eq!(host.is_loopback(), is_loopback, "{value}");
            assert_eq!(host.is_unregistrable(), is_unregistrable, "{value}");
        }
    }

    #[test]
    fn other_values_are_no_names() {
        for value in [
            "",
            ":80",
            "a b",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "localhost:65536",
            "localhost:1:1",
            "user@localhost",
            "::1",
            "[::1",
            "[::1]1",
            "[127.0.0.1]",
            "[]",
            "ä",
        ] {
            assert_eq!(Host::parse(value), None, "{value:?}");
        }
    }
}
