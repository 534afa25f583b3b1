//! `--sandbox [NAME=]DIR`: which children the daemon starts, and with which arguments.
//!
//! The daemon does not know what a sandbox does. It passes the flags on unchanged; the program `sandbox` checks them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};
use bridge_protocol::{Rights, SessionId};
use clap::Args;

use crate::broker::HostGrant;
use crate::children::{self, ChildHost};
use crate::terminal_host;

/// The id of a sandbox that the user has not named.
const USUAL_NAME: &str = "sandbox";
/// The id of the edge for OpenHands.
const OPENHANDS: &str = "openhands";
/// Families of tools that a sandbox serves.
const TOOLS: [&str; 4] = ["shell", "file", "cell", "page"];
/// Families of tools that the edge for OpenHands serves.
const ACTIONS: [&str; 1] = ["action"];

/// `[NAME=]DIR`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    name: String,
    directory: PathBuf,
}

impl FromStr for Sandbox {
    type Err = String;

    /// The part before the first `=` is the name if it is a valid one; otherwise it belongs to the directory.
    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(name, _)| name.parse::<SessionId>().is_ok());
        let (name, directory) = named.unwrap_or((USUAL_NAME, text));
        match directory.is_empty() {
            true => Err("name a directory".to_owned()),
            false => Ok(Self { name: name.to_owned(), directory: directory.into() }),
        }
    }
}

/// Flags of sandboxes.
#[derive(Clone, Debug, Default, Args)]
pub struct SandboxArgs {
    /// Let clients run shells and change files in this directory; repeat it with names for several. File
    /// tools reach nothing outside of it. Shells start there and, without --require, can do whatever you
    /// can. The program `sandbox` must be installed, beside this one or on the PATH
    #[arg(long, value_name = "[NAME=]DIR")]
    pub sandbox: Vec<Sandbox>,

    /// Refuse to start shells and kernels that are confined by less than this: none or landlock. With
    /// landlock, commands and cells can write only below the workspace and the directory for temporary
    /// files, and lose the privileges of root. `sandbox doctor` shows what it keeps here [default: none]
    #[arg(long, value_name = "LEVEL", requires = "sandbox")]
    pub require: Option<OsString>,

    /// Network for commands: all, none, or the TCP ports that they may connect to and listen on, and udp,
    /// such as 80,443,listen:8000,udp. Most name lookups need udp. Anything except all needs --require
    /// landlock, and disables web pages and cells, which need TCP within this machine [default: all]
    #[arg(long, value_name = "PORTS", requires = "sandbox")]
    pub network: Option<OsString>,

    /// Seconds of processor time for each process of a command
    #[arg(long, value_name = "SECONDS", requires = "sandbox")]
    pub limit_cpu: Option<OsString>,

    /// Address space of each process of a command, in MiB
    #[arg(long, value_name = "MIB", requires = "sandbox")]
    pub limit_memory: Option<OsString>,

    /// Maximum number of processes of this user, including those outside of the sandbox; refused for
    /// root, whom Linux does not limit
    #[arg(long, value_name = "COUNT", requires = "sandbox")]
    pub limit_processes: Option<OsString>,

    /// Size of any file that a command writes, in MiB
    #[arg(long, value_name = "MIB", requires = "sandbox")]
    pub limit_file_size: Option<OsString>,

    /// Output that is kept of each shell, in MiB; later output is lost, and counted [default: 4096, or a
    /// quarter of the file system on which it is kept]
    #[arg(long, value_name = "MIB", requires = "sandbox")]
    pub log_quota: Option<OsString>,

    /// The Python for cells; it must have ipykernel [default: the first on the PATH that has it]
    #[arg(long, value_name = "PROGRAM", requires = "sandbox")]
    pub kernel_python: Option<OsString>,

    /// The Chromium that renders web pages; without it, pages are fetched but not rendered [default:
    /// /usr/bin/chromium]
    #[arg(long, value_name = "PROGRAM", requires = "sandbox")]
    pub browser_program: Option<OsString>,

    /// Include the source of the error in error observations of actions
    #[arg(long, requires = "sandbox")]
    pub action_traces: bool,
}

impl SandboxArgs {
    /// The children to start for this session, whose private files are in `runtime`.
    pub fn children(&self, session: &SessionId, runtime: &Path) -> anyhow::Result<Vec<ChildHost>> {
        if self.sandbox.is_empty() {
            return Ok(Vec::new());
        }
        self.check_names()?;
        let program = children::find("sandbox").context(
            "the program `sandbox` is missing: install it beside bridge-daemon, or on the PATH",
        )?;
        let sandboxes = self.sandbox.iter().map(|sandbox| ChildHost {
            program: program.clone(),
            arguments: self.arguments(sandbox, session, runtime),
            runtime_id: sandbox.name.clone(),
            grant: HostGrant::child(&sandbox.name, &TOOLS, false),
            calls_with: None,
        });
        let edge = children::find("openhands-edge").map(|program| ChildHost {
            program,
            arguments: self.edge_arguments(),
            runtime_id: OPENHANDS.to_owned(),
            grant: HostGrant::child(OPENHANDS, &ACTIONS, true),
            calls_with: Some(Rights::ALL),
        });
        Ok(sandboxes.chain(edge).collect())
    }

    /// The grant of the session's host token. It excludes the ids of children and of the terminal host, and the tools
    /// with which its holder could read and answer requests that were meant for a sandbox.
    pub fn general_grant(&self) -> HostGrant {
        let own = [OPENHANDS, terminal_host::RUNTIME_ID].map(str::to_owned);
        let ids = self.sandbox.iter().map(|sandbox| sandbox.name.clone()).chain(own);
        HostGrant::general(ids, &[&TOOLS[..], &ACTIONS].concat())
    }

    fn check_names(&self) -> anyhow::Result<()> {
        let mut taken = BTreeSet::from([OPENHANDS, terminal_host::RUNTIME_ID]);
        for Sandbox { name, .. } in &self.sandbox {
            if !taken.insert(name) {
                bail!(
                    "the name {name} is taken: give each sandbox its own with --sandbox NAME=DIR"
                );
            }
        }
        Ok(())
    }

    fn arguments(&self, sandbox: &Sandbox, session: &SessionId, runtime: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["host".into()];
        let own: [(&str, OsString); 4] = [
            ("--id", sandbox.name.clone().into()),
            ("--workspace", sandbox.directory.clone().into()),
            ("--session", session.as_str().into()),
            ("--runtime-directory", runtime.into()),
        ];
        let given = [
            ("--require", &self.require),
            ("--network", &self.network),
            ("--limit-cpu", &self.limit_cpu),
            ("--limit-memory", &self.limit_memory),
            ("--limit-processes", &self.limit_processes),
            ("--limit-file-size", &self.limit_file_size),
            ("--log-quota", &self.log_quota),
            ("--kernel-python", &self.kernel_python),
            ("--browser-program", &self.browser_program),
        ];
        let given = given.into_iter().filter_map(|(flag, value)| Some((flag, value.clone()?)));
        for (flag, value) in own.into_iter().chain(given) {
            // As one argument, so that a value that begins with a dash is not taken for a flag.
            let mut argument = OsString::from(flag);
            argument.push("=");
            argument.push(value);
            arguments.push(argument);
        }
        arguments
    }

    fn edge_arguments(&self) -> Vec<OsString> {
        let traces = self.action_traces.then(|| "--action-traces".into());
        std::iter::once("host".into()).chain(traces).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        sandboxes: SandboxArgs,
    }

    fn parse(words: &[&str]) -> Result<SandboxArgs, clap::Error> {
        let words = ["program"].iter().chain(words);
        <Cli as clap::Parser>::try_parse_from(words).map(|cli| cli.sandboxes)
    }

    #[test]
    fn a_sandbox_has_a_name_if_one_stands_before_its_directory() {
        for (text, name, directory) in [
            (".", "sandbox", "."),
            ("web=/srv/web", "web", "/srv/web"),
            ("a=b=c", "a", "b=c"),
            ("./a=b", "sandbox", "./a=b"),
            ("/a=b", "sandbox", "/a=b"),
        ] {
            let expected = Sandbox { name: name.into(), directory: directory.into() };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert!("".parse::<Sandbox>().is_err() && "x=".parse::<Sandbox>().is_err());
    }

    #[test]
    fn names_are_unique() {
        let check = |words: &[&str]| parse(words).unwrap().check_names().is_ok();
        assert!(check(&["--sandbox", ".", "--sandbox", "b=."]));
        for words in [
            &["--sandbox", "a=.", "--sandbox", "a=/"][..],
            &["--sandbox", ".", "--sandbox", "/"],
            &["--sandbox", "terminal=."],
            &["--sandbox", "openhands=."],
        ] {
            assert!(!check(words), "{words:?}");
        }
    }

    #[test]
    fn flags_are_passed_on_as_they_were_given() {
        let words = [
            "--sandbox",
            "a=/w",
            "--require",
            "landlock",
            "--network",
            "80,-1",
            "--log-quota",
            "7",
        ];
        let args = parse(&words).unwrap();
        let given = args.arguments(&args.sandbox[0], &"s".parse().unwrap(), Path::new("/run/x"));
        let expected = [
            "host",
            "--id=a",
            "--workspace=/w",
            "--session=s",
            "--runtime-directory=/run/x",
            "--require=landlock",
            "--network=80,-1",
            "--log-quota=7",
        ];
        assert_eq!(given, expected);
        assert!(parse(&["--require", "landlock"]).is_err(), "a flag of a sandbox needs one");
        assert_eq!(args.edge_arguments(), ["host"]);
        let traced = parse(&["--sandbox", ".", "--action-traces"]).unwrap();
        assert_eq!(traced.edge_arguments(), ["host", "--action-traces"]);
    }
}
