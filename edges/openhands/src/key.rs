//! The key that a server draws if it is given none. Programs of the same user find it in a private
//! file.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use bridge_protocol::Secret;
use clap::Args;
use rand::{TryRng as _, rngs::SysRng};
use sandbox_host::state;

/// The file with the key of a running server. Dropping this value removes it.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    key: Secret,
}

impl KeyFile {
    /// Draws a key for the server at this address, and writes it to the file.
    pub(crate) fn draw(address: SocketAddr) -> anyhow::Result<Self> {
        let place = state::runtime_directory()
            .context("there is no place for the key of the server: set SESSION_API_KEY")?;
        Self::draw_in(&place, address)
    }

    fn draw_in(directory: &Path, address: SocketAddr) -> anyhow::Result<Self> {
        let mut bits = [0; 32];
        SysRng.try_fill_bytes(&mut bits).context("the system gives no random numbers")?;
        let file = Self { path: path(directory, address), key: Secret::from_random(bits) };
        private_files::replace(&file.path, file.key.expose().as_bytes())
            .with_context(|| format!("writing the key of the server to {}", file.path.display()))?;
        Ok(file)
    }

    /// The key.
    pub(crate) fn key(&self) -> &str {
        self.key.expose()
    }

    /// Where the key is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        // In another network namespace, a server of this user may have the same address.
        if fs::read_to_string(&self.path).is_ok_and(|key| key == self.key.expose()) {
            // A file that stays is replaced by the next server at this address.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn path(directory: &Path, address: SocketAddr) -> PathBuf {
    directory.join(format!("openhands-{address}.key"))
}

/// Names the server whose key is printed.
#[derive(Debug, Args)]
pub(crate) struct KeyArguments {
    /// The port of the server
    port: u16,
    /// The address that it listens on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
}

/// Prints the key of a server that this user has started without SESSION_API_KEY.
pub(crate) fn print(arguments: &KeyArguments) -> anyhow::Result<ExitCode> {
    let address = SocketAddr::new(arguments.host, arguments.port);
    let key = find(&state::runtime_directory()?, address)?;
    io::Write::write_fmt(&mut io::stdout(), format_args!("{key}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn find(directory: &Path, address: SocketAddr) -> anyhow::Result<String> {
    match fs::read_to_string(path(directory, address)) {
        Ok(key) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "no server of yours has drawn a key for {address}: start one with `openhands-edge serve`, or use the \
             SESSION_API_KEY that it was given"
        ),
        Err(error) => Err(error).context("reading the key of the server"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_private_and_goes_with_its_server() {
        let directory = tempfile::tempdir().unwrap();
        let [here, there] = ["127.0.0.1:3000", "[::1]:3000"].map(|text| text.parse().unwrap());
        let file = KeyFile::draw_in(directory.path(), here).unwrap();
        let other = KeyFile::draw_in(directory.path(), there).unwrap();
        assert_eq!(find(directory.path(), here).unwrap(), file.key());
        assert_eq!((file.key().len(), other.key().len()), (64, 64));
        assert_ne!(file.key(), other.key());
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // The next server at this address keeps its key when this one ends late.
        let next = KeyFile::draw_in(directory.path(), here).unwrap();
        drop(file);
        assert_eq!(find(directory.path(), here).unwrap(), next.key());
        drop(next);
        let missing = find(directory.path(), here).unwrap_err().to_string();
        assert!(missing.contains("127.0.0.1:3000") && missing.contains("SESSION_API_KEY"));
        assert_eq!(find(directory.path(), there).unwrap(), other.key());
    }
}
