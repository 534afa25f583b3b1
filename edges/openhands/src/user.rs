//! `openhands-edge serve` for another user: who that is, and how the server becomes that user.
//!
//! A server that root starts for another user does not stay root. Before it opens anything, it
//! creates the user if necessary, gives the working directory to the user, and executes itself
//! again as that user. So shells, cells, files and the editor belong to that user: no link that a
//! command makes can lead the server to a file of root, and no right of root is left.

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
const FORMER_USER_VARIABLES: [&str; 6] = [
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "MAIL",
];

/// The user that the server should run as.
#[derive(Debug)]
pub(crate) struct TargetUser {
    /// The user's name; `None` for the user that starts the server.
    pub name: Option<String>,
    /// The user id for a user that does not exist yet. An existing user keeps its own id.
    id: Option<u32>,
}

impl TargetUser {
    /// Takes the flags, unless the environment overrides them: images have a fixed command line.
    pub(crate) fn new(name: Option<String>, id: Option<u32>) -> anyhow::Result<Self> {
        Ok(Self { name: overriding("RUNTIME_USERNAME", name)?, id: overriding("RUNTIME_UID", id)? })
    }

    /// Executes the program again as this user. Returns if it already runs as this user, if
    /// SU_TO_USER forbids it, or if only root could do it, which is printed.
    pub(crate) fn switch(&self, working_dir: &Path) -> anyhow::Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let us = geteuid();
        let account = find(name)?;
        if account.as_ref().is_some_and(|account| account.uid == us) || !may_switch() {
            return Ok(());
        }
        if !us.is_root() {
            eprintln!(
                "openhands-edge: only root can become {name}, so everything runs as user {us}. If that matters, start \
                 the server as root or as {name}"
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
            Err(_) => bail!(
                "{variable} is {text:?}, which is not valid: correct it or unset the variable"
            ),
        },
        _ => Ok(given),
    }
}

/// Whether SU_TO_USER allows to become another user.
fn may_switch() -> bool {
    let allowed = ["true", "1", "t", "yes", "y", ""];
    env::var("SU_TO_USER").map_or(true, |text| allowed.contains(&&*text.to_ascii_lowercase()))
}

fn find(name: &str) -> anyhow::Result<Option<User>> {
    User::from_name(name).with_context(|| format!("looking for the user {name}"))
}

/// Creates a user with a home directory and a group of its own. The user joins the group `sudo` if
/// it exists; the configuration of the machine decides what that permits.
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
        format!("there is no user {name}, and useradd cannot be started: create the user first")
    })?;
    // Another server may have created the user meanwhile.
    match find(name)? {
        Some(account) => Ok(account),
        None => bail!(
            "there is no user {name}, and useradd cannot create it: {}. Choose another --username or --user-id, \
             or create the user first",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}

/// Creates the working directory and gives it to the user; its content stays unchanged. The default
/// `.` is not given away: only a directory that was named explicitly is.
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

/// Drops all rights of root and executes the program again. Returns only after an error.
fn become_user(account: &User) -> anyhow::Result<Infallible> {
    let User { name, uid, gid, dir, shell, .. } = account;
    let program = env::current_exe().context("finding this program")?;
    set_ids(name, *uid, *gid).with_context(|| format!("becoming {name}"))?;
    let mut command = Command::new(&program);
    command.args(env::args_os().skip(1));
    command.env("HOME", dir).env("USER", name).env("LOGNAME", name).env("SHELL", shell);
    for variable in FORMER_USER_VARIABLES {
        command.env_remove(variable);
    }
    Err(command.exec()).with_context(|| {
        format!(
            "{name} cannot execute {}: install it where every user may execute it, such as /usr/local/bin",
            program.display()
        )
    })
}

fn set_ids(name: &str, user: Uid, group: Gid) -> anyhow::Result<()> {
    // The groups first: afterwards the process may no longer change them.
    initgroups(&CString::new(name)?, group)?;
    setgid(group)?;
    setuid(user)?;
    Ok(())
}
