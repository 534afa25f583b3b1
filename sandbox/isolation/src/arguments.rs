//! Converts a policy to arguments of the launcher, and back.

use std::ffi::{OsStr, OsString};
use std::str::FromStr;

use super::{Error, Limits, Network, Policy};

const LEVEL: &str = "--level";
const WRITABLE: &str = "--writable";
const UNREADABLE: &str = "--unreadable";
const READABLE: &str = "--readable";
const TCP_CONNECT: &str = "--tcp-connect";
const TCP_LISTEN: &str = "--tcp-listen";
const UDP: &str = "--udp";
const UNIX_SOCKETS: &str = "--unix-sockets";
const ALLOWED: &str = "allowed";
const CPU_SECONDS: &str = "--cpu-seconds";
const MEMORY_BYTES: &str = "--memory-bytes";
const PROCESSES: &str = "--processes";
const FILE_BYTES: &str = "--file-bytes";

impl Policy {
    /// The arguments that pass this policy to the launcher. `--` and the command follow them.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![LEVEL.into(), self.level.name().into()];
        let mut add = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        for (name, paths) in
            [(WRITABLE, &self.writable), (UNREADABLE, &self.unreadable), (READABLE, &self.readable)]
        {
            for path in paths {
                add(name, path.into());
            }
        }
        if let Network::Only { connect, listen, udp } = &self.network {
            add(TCP_CONNECT, ports(connect));
            add(TCP_LISTEN, ports(listen));
            if *udp {
                add(UDP, ALLOWED.into());
            }
        }
        if self.unix_sockets {
            add(UNIX_SOCKETS, ALLOWED.into());
        }
        let Limits { cpu_seconds, memory_bytes, processes, file_bytes } = self.limits;
        for (name, limit) in [
            (CPU_SECONDS, cpu_seconds),
            (MEMORY_BYTES, memory_bytes),
            (PROCESSES, processes),
            (FILE_BYTES, file_bytes),
        ] {
            if let Some(limit) = limit {
                add(name, limit.to_string().into());
            }
        }
        arguments
    }

    /// Parses a policy from the front of the launcher's arguments, up to `--`. The iterator is left at the command.
    pub fn from_arguments(arguments: &mut impl Iterator<Item = OsString>) -> Result<Self, Error> {
        let mut policy = Self::default();
        loop {
            let name = arguments.next().ok_or_else(|| bad("-- and a command are missing"))?;
            if name == "--" {
                return Ok(policy);
            }
            let value = arguments.next().ok_or_else(|| bad("the last argument has no value"))?;
            policy.set(&name, value)?;
        }
    }

    fn set(&mut self, name: &OsStr, value: OsString) -> Result<(), Error> {
        let text = value.to_str().unwrap_or_default();
        match name.to_str().unwrap_or_default() {
            LEVEL => self.level = text.parse()?,
            WRITABLE => self.writable.push(value.into()),
            UNREADABLE => self.unreadable.push(value.into()),
            READABLE => self.readable.push(value.into()),
            TCP_CONNECT => *self.only().0 = parse_ports(text)?,
            TCP_LISTEN => *self.only().1 = parse_ports(text)?,
            UDP if text == ALLOWED => *self.only().2 = true,
            UNIX_SOCKETS if text == ALLOWED => self.unix_sockets = true,
            CPU_SECONDS => self.limits.cpu_seconds = Some(parse(text)?),
            MEMORY_BYTES => self.limits.memory_bytes = Some(parse(text)?),
            PROCESSES => self.limits.processes = Some(parse(text)?),
            FILE_BYTES => self.limits.file_bytes = Some(parse(text)?),
            _ => return Err(bad(&format!("{name:?} is unknown"))),
        }
        Ok(())
    }

    /// Returns the ports to connect to and to listen on, and whether UDP is allowed. Calling this restricts the
    /// network.
    fn only(&mut self) -> (&mut Vec<u16>, &mut Vec<u16>, &mut bool) {
        if self.network == Network::Unrestricted {
            self.network = Network::Only { connect: Vec::new(), listen: Vec::new(), udp: false };
        }
        match &mut self.network {
            Network::Only { connect, listen, udp } => (connect, listen, udp),
            Network::Unrestricted => unreachable!("it was restricted above"),
        }
    }
}

fn ports(ports: &[u16]) -> OsString {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",").into()
}

fn parse_ports(text: &str) -> Result<Vec<u16>, Error> {
    text.split(',').filter(|port| !port.is_empty()).map(parse).collect()
}

fn parse<T: FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| bad(&format!("{text:?} is not a number in range")))
}

fn bad(reason: &str) -> Error {
    Error::Arguments { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use super::super::Level;
    use super::*;
    use proptest::option::of;
    use proptest::prelude::*;

    fn network() -> impl Strategy<Value = Network> {
        let some = || proptest::collection::vec(any::<u16>(), 0..4);
        of((some(), some(), any::<bool>())).prop_map(|lists| match lists {
            Some((connect, listen, udp)) => Network::Only { connect, listen, udp },
            None => Network::Unrestricted,
        })
    }

    fn policy() -> impl Strategy<Value = Policy> {
        let path = proptest::collection::vec(1_u8.., 1..20)
            .prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let paths = proptest::collection::vec(path, 0..4);
        let level = prop_oneof![Just(Level::None), Just(Level::Landlock)];
        let limit = || of(any::<u64>());
        let limits = (limit(), limit(), limit(), limit());
        let places = (paths.clone(), paths.clone(), paths);
        let walls = (level, places, network(), any::<bool>());
        (walls, limits).prop_map(|(walls, (cpu_seconds, memory_bytes, processes, file_bytes))| {
            let (level, (writable, unreadable, readable), network, unix_sockets) = walls;
            let limits = Limits { cpu_seconds, memory_bytes, processes, file_bytes };
            Policy { level, writable, unreadable, readable, network, unix_sockets, limits }
        })
    }

    proptest! {
        #[test]
        fn a_policy_survives_the_way_to_the_launcher(policy in policy()) {
            let mut arguments = policy.to_arguments();
            arguments.extend(["--".into(), "sh".into(), "--level".into()]);
            let mut arguments = arguments.into_iter();
            prop_assert_eq!(Policy::from_arguments(&mut arguments).unwrap(), policy);
            prop_assert_eq!(arguments.collect::<Vec<_>>(), ["sh", "--level"]);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for arguments in [
            &["--level", "docker", "--"][..],
            &["--tcp-connect", "99999", "--"],
            &["--tcp-listen", "80,x", "--"],
            &["--cpu-seconds", "-1", "--"],
            &["--memory-bytes", "much", "--"],
            &["--processes", "1.5", "--"],
            &["--file-bytes", "", "--"],
            &["--no-such", "1", "--"],
            &["--level", "none"],
            &["--level"],
        ] {
            let mut arguments = arguments.iter().map(OsString::from);
            assert!(Policy::from_arguments(&mut arguments).is_err());
        }
    }
}
