//! The environment that new shells inherit: that of their owner, also where an earlier owner has started the tmux
//! server, which gives it to them.

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
    tmux::{Tmux, run_plainly},
};

/// What tells tmux that it runs inside another one; not even a server that we start gets these.
const OF_ANOTHER_TMUX: [&str; 2] = ["TMUX", "TMUX_PANE"];

/// Gives the server our environment in place of what it has. The values go through a private file, so that no list of
/// processes shows them, and not through the control client: tmux 3.3 dies if that is killed while many commands wait.
pub(super) async fn replace(tmux: &Tmux, config: &Config) -> Result<()> {
    let ours = env::vars_os().filter(|(name, _)| {
        !name.is_empty() && !OF_ANOTHER_TMUX.iter().any(|foreign| name == foreign)
    });
    let ours: Vec<(OsString, OsString)> = ours.collect();
    let names: BTreeSet<&[u8]> = ours.iter().map(|(name, _)| name.as_bytes()).collect();
    // A line of a longer value may look like a variable. To remove one that is not there does no harm.
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
        .map_err(Error::io("writing down the environment"))?;
    let replaced = run_plainly(config, &["source-file".as_ref(), file.as_os_str()]).await;
    if let Err(error) = fs::remove_file(file) {
        warn!(%error, "the environment stays in a private file");
    }
    replaced
}

/// Quotes any bytes for tmux's own parser, as one argument on one line.
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
