//! A daemon whose child hosts are scripted: the programs `sandbox` and `openhands-edge` that it starts are
//! `bridge-client host` with rules. So its supervision of children is tested without a sandbox.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, binary};
use crate::program::{wait_until, write_program};

/// A script that records its arguments, descriptors and limits, and becomes a host with the rules for its id.
const CHILD: &str = r#"
here=$(dirname "$0"); id=$(basename "$0"); given="$*"
for argument; do
    case $argument in
        --id=*) id=${argument#*=} ;;
        --workspace=*) [ -d "${argument#*=}" ] || { echo "${argument#*=} is no directory" >&2; exit 1; } ;;
    esac
    [ "$before" = --connection-fd ] && descriptor=$argument
    before=$argument
done
ls -l /proc/$$/fd >"$here/$id.descriptors"
ulimit -n >"$here/$id.limit"
printf '%s\n' "$given" >"$here/$id.arguments"
printf '%s\n' $$ >"$here/$id.pid"
exec CLIENT host --rules "$here/$id.rules" --log "$here/$id.log" --connection-fd "$descriptor"
"#;

/// A folder with the daemon and the programs that it starts as children.
pub struct Installation {
    folder: TempDir,
}

impl Installation {
    /// A folder with the daemon and a scripted `sandbox`.
    pub fn new() -> Self {
        let installed = binary("bridge-daemon");
        // On the file system of the real daemon, so that it can be hard-linked.
        let folder = tempfile::tempdir_in(installed.parent().unwrap()).unwrap();
        let daemon = folder.path().join("bridge-daemon");
        std::fs::hard_link(&installed, &daemon)
            .or_else(|_| std::fs::copy(&installed, &daemon).map(drop))
            .unwrap();
        let installation = Self { folder };
        installation.install("sandbox");
        installation
    }

    /// Installs a scripted program. It uses the rules for its id or, without an id, for its own name.
    pub fn install(&self, program: &str) {
        let client = binary("bridge-client");
        write_program(&self.path(program), &CHILD.replace("CLIENT", client.to_str().unwrap()));
    }

    /// Sets the methods that the child of this id serves, with their results. A method with the result
    /// `"silent"` is never answered.
    pub fn serve(&self, id: &str, folder: Option<&Path>, edge: bool, served: &[(&str, Value)]) {
        let rules: Vec<_> = served
            .iter()
            .map(|(method, result)| match result.as_str() {
                Some("silent") => json!({"method": method, "silent": true}),
                _ => json!({"method": method, "result": result}),
            })
            .collect();
        let folders: Vec<_> = folder.into_iter().collect();
        let rules = json!({"workspaceFolders": folders, "edge": edge, "rules": rules});
        std::fs::write(self.path(&format!("{id}.rules")), rules.to_string()).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The content of a file that a child has written, or an empty text.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The process id of the child of this id that was started last.
    pub fn pid(&self, id: &str) -> u32 {
        let mut pid = None;
        wait_until("the pid of a child", || {
            pid = self.read(&format!("{id}.pid")).trim().parse().ok();
            pid.is_some()
        });
        pid.unwrap()
    }

    /// Makes a command start the daemon of this folder instead of the real one.
    pub fn use_in(&self, command: &mut Command) {
        let mut other = Command::new(self.path("bridge-daemon"));
        other.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => other.env(name, value),
                None => other.env_remove(name),
            };
        }
        *command = other;
    }

    /// Starts `bridge-daemon serve` with these flags.
    pub fn start(&self, flags: &[&str]) -> Daemon {
        Daemon::start_by(|command| {
            self.use_in(command);
            command.args(flags);
        })
    }
}

impl Default for Installation {
    fn default() -> Self {
        Self::new()
    }
}
