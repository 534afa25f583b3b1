//! The environment variables by which the program of a run finds its daemon.

/// Names of three variables that belong together. A family counts only when all three are set and not
/// empty. Variables of different families are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Variable for the address: `ws://127.0.0.1:PORT/` or `unix:PATH`.
    pub addr: &'static str,
    /// Variable for the client token.
    pub token: &'static str,
    /// Variable for the session id.
    pub session: &'static str,
}

/// The two families, in the order in which clients read them. The daemon sets both, with the same values.
pub const FAMILIES: [Family; 2] = [
    Family { addr: "RUN_BRIDGE_ADDR", token: "RUN_BRIDGE_TOKEN", session: "RUN_BRIDGE_SESSION" },
    Family {
        addr: "EVOLVE_RUN_BRIDGE_ADDR",
        token: "EVOLVE_RUN_BRIDGE_TOKEN",
        session: "EVOLVE_RUN_BRIDGE_SESSION",
    },
];

impl Family {
    /// Address, token and session from this family, if all three variables are set and not empty.
    pub fn read(self, get: impl Fn(&str) -> Option<String>) -> Option<[String; 3]> {
        let value = |name| get(name).filter(|value| !value.is_empty());
        Some([value(self.addr)?, value(self.token)?, value(self.session)?])
    }
}

/// Address, token and session from the first complete family.
pub fn read(get: impl Fn(&str) -> Option<String>) -> Option<[String; 3]> {
    FAMILIES.into_iter().find_map(|family| family.read(&get))
}

/// Loopback names for `no_proxy`. Without them, many programs send `ws://127.0.0.1` through a proxy.
pub const LOOPBACK_NAMES: &str = "127.0.0.1,localhost,::1";

/// The value for `no_proxy` and `NO_PROXY`: the value before, extended by [`LOOPBACK_NAMES`].
pub fn no_proxy(before: Option<&str>) -> String {
    match before.filter(|list| !list.is_empty()) {
        Some(list) => format!("{list},{LOOPBACK_NAMES}"),
        None => LOOPBACK_NAMES.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(set: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn families_are_complete_and_never_mixed() {
        let mixed = get(&[
            ("RUN_BRIDGE_ADDR", "a"),
            ("EVOLVE_RUN_BRIDGE_TOKEN", "t"),
            ("RUN_BRIDGE_SESSION", "s"),
        ]);
        assert_eq!(read(mixed), None);
        let second = get(&[
            ("RUN_BRIDGE_ADDR", "x"),
            ("RUN_BRIDGE_TOKEN", ""),
            ("RUN_BRIDGE_SESSION", "x"),
            ("EVOLVE_RUN_BRIDGE_ADDR", "a"),
            ("EVOLVE_RUN_BRIDGE_TOKEN", "t"),
            ("EVOLVE_RUN_BRIDGE_SESSION", "s"),
        ]);
        assert_eq!(read(second), Some(["a".into(), "t".into(), "s".into()]));
    }

    #[test]
    fn no_proxy_keeps_its_names_and_gets_loopback() {
        assert_eq!(no_proxy(None), "127.0.0.1,localhost,::1");
        assert_eq!(no_proxy(Some("")), "127.0.0.1,localhost,::1");
        assert_eq!(no_proxy(Some("corp.example")), "corp.example,127.0.0.1,localhost,::1");
    }
}
