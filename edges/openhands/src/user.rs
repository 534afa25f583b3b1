//! `openhands-edge serve` for another user: who that is, and how the server becomes it.
//!
//! A server that root starts for somebody else does not stay root. Before it opens anything it makes the
//! user if there is none, hands over the working directory, and executes itself anew as that user. So
//! shells, cells, files and the editor are that user's by nature: no link that a command makes can lead
//! the server to a file of root's, and nothing of what root may do is left.

use std::{
    convert::Infallible,
    env,
    ffi::CString,
    fs::{self, File, OpenOptions},
    os::unix::{
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
        process::CommandExt as _,
    },
    path::Path,
    process::Command,
    str::FromStr,
};

use anyhow::{Context as _, bail, ensure};
use nix::unistd::{Gid, Group, Uid, User, geteuid, initgroups, setgid, setuid};
use rustix::fs::OFlags;

/// Variables that name directories of the former user.
const FORMER: [&str; 6] = [
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "MAIL",
];

/// Whose shells are wanted.
#[derive(Debug)]
pub(crate) struct Wish {
    /// The user's name; none for whoever starts the server.
    pub name: Option<String>,
    /// The number for a user that does not exist yet. One that exists keeps its own.
    id: Option<u32>,
}

impl Wish {
    /// From the flags, unless the environment says otherwise: images have a command line of their own.
    pub(crate) fn new(name: Option<String>, id: Option<u32>) -> anyhow::Result<Self> {
        Ok(Self { name: overriding("RUNTIME_USERNAME", name)?, id: overriding("RUNTIME_UID", id)? })
    }

    /// Executes the program anew as this user, or returns if it is the right one already, or if there is
    /// no way to become it, which is said.
    pub(crate) fn fulfil(&self, working_dir: &Path) -> anyhow::Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let us = geteuid();
        let account = find(name)?;
        if account.as_ref().is_some_and(|account| account.uid == us) || !may_switch() {
            return Ok(());
        }
        if !us.is_root() {
            eprintln!(
                "openhands-edge: only root can become {name}; everything here is done as user {us}. Start the server \
                 as root, or as {name}, if that matters"
            );
            return Ok(());
        }
        let account = match account {
            Some(account) => account,
            None => create(name, self.id)?,
        };
        hand_over(working_dir, &account)?;
        match become_user(&account)? {}
    }
}

/// The value of a variable if it is set, otherwise the given value.
fn overriding<T: FromStr>(variable: &str, given: Option<T>) -> anyhow::Result<Option<T>> {
    match env::var(variable) {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => bail!("{variable} is {text:?}, which is no such value: correct or unset it"),
        },
        _ => Ok(given),
    }
}

/// Whether the environment leaves it to us.
fn may_switch() -> bool {
    let allowed = ["true", "1", "t", "yes", "y", ""];
    env::var("SU_TO_USER").map_or(true, |text| allowed.contains(&&*text.to_ascii_lowercase()))
}

fn find(name: &str) -> anyhow::Result<Option<User>> {
    User::from_name(name).with_context(|| format!("looking for the user {name}"))
}

/// Makes a user with a home and a group of its own. It is one of the group `sudo` where there is one; what
/// that is worth is for the machine to say.
fn create(name: &str, id: Option<u32>) -> anyhow::Result<User> {
    let mut command = Command::new("useradd");
    let path = env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.args(["--create-home", "--user-group", "--shell", "/bin/bash"]);
    command.arg("--home-dir").arg(Path::new("/home").join(name));
    if let Some(id) = id {
        command.args(["--uid", &id.to_string()]);
    }
    if Group::from_name("sudo")?.is_some() {
        command.args(["--groups", "sudo"]);
    }
    let output = command.arg("--").arg(name).output().with_context(|| {
        format!("there is no user {name}, and useradd cannot be started: make the user first")
    })?;
    // Another server may have been quicker.
    match find(name)? {
        Some(account) => Ok(account),
        None => bail!(
            "there is no user {name}, and useradd cannot make it: {}. Choose another --username or --user-id, \
             or make the user first",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}

/// Makes the working directory and gives it to the user; what is in it stays as it is. The directory in which
/// the server was started is only given away by name.
fn hand_over(directory: &Path, account: &User) -> anyhow::Result<()> {
    let context = || format!("giving {} to {}", directory.display(), account.name);
    fs::create_dir_all(directory).with_context(context)?;
    let real = directory.canonicalize().with_context(context)?;
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&real);
    let handle: File = opened.with_context(context)?;
    let metadata = handle.metadata().with_context(context)?;
    if metadata.uid() == account.uid.as_raw() || directory == Path::new(".") {
        return Ok(());
    }
    ensure!(
        real != Path::new("/"),
        "the whole file system cannot be given to {}: name another --working-dir",
        account.name
    );
    let group = overriding("SANDBOX_GROUP_ID", None)?.unwrap_or(account.gid.as_raw());
    fchown(&handle, Some(account.uid.as_raw()), Some(group)).with_context(context)?;
    let mode = metadata.permissions().mode() | 0o060;
    handle.set_permissions(fs::Permissions::from_mode(mode)).with_context(context)
}

/// Gives up everything that root may do, and begins anew. Returns only if something is wrong.
fn become_user(account: &User) -> anyhow::Result<Infallible> {
    let User { name, uid, gid, dir, shell, .. } = account;
    let program = env::current_exe().context("finding this program")?;
    take_on(name, *uid, *gid).with_context(|| format!("becoming {name}"))?;
    let mut command = Command::new(&program);
    command.args(env::args_os().skip(1));
    command.env("HOME", dir).env("USER", name).env("LOGNAME", name).env("SHELL", shell);
    for variable in FORMER {
        command.env_remove(variable);
    }
    Err(command.exec()).with_context(|| {
        format!(
            "{name} cannot execute {}: install it where every user may, such as /usr/local/bin",
            program.display()
        )
    })
}

fn take_on(name: &str, user: Uid, group: Gid) -> anyhow::Result<()> {
    // The groups first: afterwards nobody is there who may change them.
    initgroups(&CString::new(name)?, group)?;
    setgid(group)?;
    setuid(user)?;
    Ok(())
}
