//! The environment that new shells inherit: always that of the present owner. The tmux server passes its own
//! environment on, which comes from an earlier owner if that one started the server.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt as _,
};

use tracing::warn;

use crate::{Error, Result};
use crate::{
    config::Config,
    tmux::{Tmux, run_once},
};

/// Variables that tell tmux that it runs inside another tmux. Even a server that we start does not get them.
const TMUX_VARIABLES: [&str; 2] = ["TMUX", "TMUX_PANE"];

/// Replaces the environment of the server by ours. The values go through a private file, so that no list of processes
/// shows them, and not through the control client: tmux 3.3 crashes if that is killed while many commands are queued.
pub(super) async fn replace(tmux: &Tmux, config: &Config) -> Result<()> {
    let ours = env::vars_os().filter(|(name, _)| {
        !name.is_empty() && !TMUX_VARIABLES.iter().any(|foreign| name == foreign)
    });
    let ours: Vec<(OsString, OsString)> = ours.collect();
    let names: BTreeSet<&[u8]> = ours.iter().map(|(name, _)| name.as_bytes()).collect();
    // A line of a multi-line value may look like a variable. Unsetting one that does not exist is harmless.
    let theirs = tmux.ask("show-environment -g").await?;
    let known: BTreeSet<&[u8]> = theirs.lines().map(str::as_bytes).collect();
    let changed = ours.iter().filter(|(name, value)| {
        !known.contains([name.as_bytes(), b"=", value.as_bytes()].concat().as_slice())
    });
    let theirs = theirs.lines().filter_map(|line| line.split_once('=').map(|(name, _)| name));
    let gone = theirs.filter(|name| !name.is_empty() && !names.contains(name.as_bytes()));
    let mut commands: Vec<String> =
        gone.map(|name| format!("set-environment -gu -- {}", quote(name.as_ref()))).collect();
    commands
        .extend(changed.map(|(name, value)| {
            format!("set-environment -g -- {} {}", quote(name), quote(value))
        }));
    if commands.is_empty() {
        return Ok(());
    }
    let file = config.environment();
    private_files::replace(&file, commands.join("\n").as_bytes())
        .map_err(Error::io("writing the environment for tmux"))?;
    let replaced = run_once(config, &["source-file".as_ref(), file.as_os_str()]).await;
    if let Err(error) = fs::remove_file(file) {
        warn!(%error, "the file with the environment could not be removed; it is private to the user");
    }
    replaced
}

/// Quotes any bytes as one argument on one line for tmux's parser.
fn quote(word: &OsStr) -> String {
    let mut quoted = String::from("\"");
    for &byte in word.as_bytes() {
        match byte {
            b'"' | b'\\' | b'$' | b'~' => quoted.extend(['\\', char::from(byte)]),
            b' '..0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place_on_the_line() {
        assert_eq!(quote("a 'b' \"$c\";\nü".as_ref()), r#""a 'b' \"\$c\";\012\303\274""#);
    }
}
