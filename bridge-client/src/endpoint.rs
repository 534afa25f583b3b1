//! Finds the daemon: its address, token and session.
//!
//! The environment of a run comes first: its variables were set for this program. Outside a run, the connection files of
//! this user are read. If several daemons run, the person must choose one, because a guess might reach the wrong editor.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bridge_protocol::connection_file::ConnectionFile;
use bridge_protocol::{Secret, SessionId, env};
use connection_file::Directory;

use crate::error::{Error, without_number};

/// Everything that is needed to connect.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The address of the daemon.
    pub address: Address,
    /// The token, which decides the role of the connection.
    pub token: Secret,
    /// The session that the daemon must serve.
    pub session: SessionId,
}

/// Where a daemon listens: `ws://127.0.0.1:PORT/` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port of this machine.
    Tcp {
        /// `127.0.0.1`, `localhost` or `[::1]`. Never another machine: the token would be sent unencrypted.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// A running daemon, with what distinguishes it from others for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its session. `--session` chooses by it.
    pub session: SessionId,
    /// The directory in which the run was started.
    pub directory: String,
    /// The program, if it is a run.
    pub program: Option<String>,
    /// How long the daemon has been running.
    pub age: Duration,
}

impl Endpoint {
    /// Finds the daemon for a client. `session` is the person's choice, if there is one. `get` reads the environment.
    pub fn find(
        session: Option<&SessionId>,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        if let Some([address, token, own]) = env::read(&get)
            && session.is_none_or(|session| session.as_str() == own)
        {
            return Self::from_environment(&address, token, &own);
        }
        let chosen = match session {
            Some(session) => Some(session.clone()),
            None => session_alone(&get)?,
        };
        let directory = Directory::locate(&get).map_err(files)?;
        choose(directory.list().map_err(files)?, chosen, SystemTime::now())
    }

    /// Finds the daemon for a host, with the host token.
    pub fn find_for_host(
        session: Option<&SessionId>,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let found = Self::find(session, &get)?;
        let directory = Directory::locate(&get).map_err(files)?;
        match directory.host_token(&found.session) {
            Some(token) => Ok(Self { token, ..found }),
            None => Err(Error::NoHostToken(found.session)),
        }
    }

    /// The endpoint in a connection file. The Unix socket is preferred: it is faster, and the operating system tells the
    /// daemon which user connects.
    pub fn from_file(file: ConnectionFile) -> Result<Self, Error> {
        let address = match file.unix {
            Some(path) => Address::Unix(path.into()),
            None => file.addr.parse()?,
        };
        Ok(Self { address, token: file.token, session: file.session })
    }

    /// The endpoint with this address and session, and with the token in this file, which `bridge-client token --host` has
    /// written. For hosts in a container or behind a tunnel.
    pub fn with_token_file(
        address: Address,
        session: SessionId,
        file: &Path,
    ) -> Result<Self, Error> {
        Ok(Self { address, token: read_token(file)?, session })
    }

    fn from_environment(address: &str, token: String, session: &str) -> Result<Self, Error> {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let remedy = "a token is 64 hexadecimal characters; start the run again";
            return Err(Error::BadSetting { what: "the bridge token".into(), remedy });
        }
        let session = session.parse().map_err(|_| bad_session(session))?;
        Ok(Self { address: address.parse()?, token: Secret::new(token), session })
    }
}

/// Reads a token from a file that contains it, perhaps with a line end.
pub fn read_token(file: &Path) -> Result<Secret, Error> {
    let bad = |what: &str, remedy| Error::BadSetting {
        what: format!("the token file {}{what}", file.display()),
        remedy,
    };
    let text = std::fs::read_to_string(file).map_err(|error| {
        bad(&format!(" ({})", without_number(&error)), "name a file that can be read")
    })?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad("", "it contains no token, which is 64 hexadecimal characters"));
    }
    Ok(Secret::new(token))
}

impl Candidate {
    /// Takes the parts of a connection file that a person needs.
    pub fn new(file: &ConnectionFile, now: SystemTime) -> Self {
        let started = UNIX_EPOCH + Duration::from_millis(file.started_at);
        Self {
            session: file.session.clone(),
            directory: file.directory.clone(),
            program: file.program.clone(),
            age: now.duration_since(started).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program.as_deref().unwrap_or("no program");
        let age = Age(self.age);
        write!(f, "{}  {program} in {}, for {age}", self.session, self.directory)
    }
}

/// A length of time in one unit, for people: `42 s`, `7 min`, `3 h`, `2 d`.
#[derive(Clone, Copy, Debug)]
pub struct Age(pub Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0.as_secs() {
            seconds @ 0..120 => format!("{seconds} s"),
            seconds @ 120..7_200 => format!("{} min", seconds / 60),
            seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
            seconds => format!("{} d", seconds / 86_400),
        };
        f.pad(&text)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadSetting {
            what: format!("the bridge address {text:?}"),
            remedy: "it must be ws://127.0.0.1:PORT/ or unix:PATH",
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return if path.is_absolute() { Ok(Self::Unix(path)) } else { Err(bad()) };
        }
        let rest = text.strip_prefix("ws://").ok_or_else(bad)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = authority.rsplit_once(':').ok_or_else(bad)?;
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port != 0).ok_or_else(bad)?;
        if !["127.0.0.1", "localhost", "[::1]"].contains(&host) {
            return Err(bad());
        }
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "ws://{host}:{port}/"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The session from the environment if it comes without address and token. It chooses a connection file.
fn session_alone(get: impl Fn(&str) -> Option<String>) -> Result<Option<SessionId>, Error> {
    let [family, _] = env::FAMILIES;
    match get(family.session).filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map(Some).map_err(|_| bad_session(&text)),
        None => Ok(None),
    }
}

fn choose(
    mut running: Vec<ConnectionFile>,
    chosen: Option<SessionId>,
    now: SystemTime,
) -> Result<Endpoint, Error> {
    if let Some(session) = chosen {
        let found = running.into_iter().find(|file| file.session == session);
        return found.map_or_else(|| Err(Error::UnknownSession(session)), Endpoint::from_file);
    }
    match running.len() {
        0 => Err(Error::NoDaemon),
        1 => Endpoint::from_file(running.remove(0)),
        _ => Err(Error::SeveralDaemons(
            running.iter().map(|file| Candidate::new(file, now)).collect(),
        )),
    }
}

fn bad_session(text: &str) -> Error {
    Error::BadSetting {
        what: format!("the session {text:?}"),
        remedy: "a session id is 1 to 64 of the characters A-Z a-z 0-9 _ -",
    }
}

fn files(error: connection_file::Error) -> Error {
    Error::ConnectionFiles(Arc::new(error))
}

#[cfg(test)]
mod tests;
