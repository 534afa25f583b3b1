//! The host behind `--sandbox DIR`: shells that start in a workspace, its files, and actions of agents on
//! both.
//!
//! Files are confined to the workspace by the kernel. Shells are the user's own: they start there and
//! may go anywhere that the user may, unless `--require` confines them, and the kernels of agents, too.
//!
//! Nobody who stops waiting stops a command. A cancel, a deadline or the end of the caller's
//! connection drops our work on the request, which is only the wait; the command goes on and can be
//! awaited again. Only the cancel of an action is more than that: see [`actions`].
//!
//! When the daemon ends, its shells end. When it is killed, they live on for a while, and a daemon that
//! is started for the same session and directory finds them, their running commands and their logs:
//! see [`state`].

mod actions;
mod commands;
mod error;
mod files;
mod shells;
mod state;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bridge_protocol::methods::action::{Cancel, Execute};
use bridge_protocol::methods::{self, MethodType, RegisterParams, file, shell};
use bridge_protocol::{Dialect, ErrorKind, SessionId};
use serde_json::value::RawValue;
use tracing::info;

use openhands_edge::action::KernelSettings;
use sandbox_files::Workspace;
use sandbox_isolation::Network;
use sandbox_pages::{Browser, ShownBy};

use crate::broker::{Role, SANDBOX};
use crate::config::SandboxArgs;
use crate::hub::Hub;
use crate::in_process::{self, Answer, Caller, Respond, read, write};
use actions::{ActionService, ActionSettings};
use files::FileService;
use shells::ShellService;

/// See the [module](self). Clones share everything.
#[derive(Clone)]
pub struct SandboxHost {
    shells: Arc<ShellService>,
    files: Arc<FileService>,
    actions: Arc<ActionService>,
    directory: String,
}

impl SandboxHost {
    /// Opens the workspace, and takes over the shells that a killed daemon of this session has left.
    /// `runtime` is the private directory of the connection files.
    pub async fn open(
        directory: &Path,
        options: &SandboxArgs,
        runtime: &Path,
        session: &SessionId,
    ) -> anyhow::Result<Self> {
        let cannot = || {
            format!("cannot use {} as sandbox: name a directory that exists", directory.display())
        };
        let directory = directory.canonicalize().with_context(cannot)?;
        let workspace = Workspace::confined(&directory).with_context(cannot)?;
        let policy = options.shells.policy(&directory);
        let root = state::root(runtime, session, &directory, &policy);
        let config = options.shells.config(&root, policy)?;
        let confinement = config.confinement();
        let shells = ShellService::open(config, directory.clone(), workspace.clone())
            .await
            .context("cannot start the shells of the sandbox")?;
        let (shells, files) = (Arc::new(shells), Arc::new(FileService::new(workspace.clone())));
        let actions = ActionSettings {
            directory: directory.clone(),
            workspace,
            editor: files.editor(),
            turns: files.turns(),
            kernel: KernelSettings {
                python: options.kernel_python.clone(),
                confinement,
                editor: None,
                restart_stuck: false,
            },
            // They would be a way around the walls.
            browser: (options.shells.network == Network::Unrestricted).then(|| Browser {
                chromium: options.browser_program.clone(),
                by: ShownBy::Program,
            }),
            traces: options.action_traces,
        };
        Ok(Self {
            actions: Arc::new(ActionService::new(actions, Arc::clone(&shells))),
            shells,
            files,
            directory: directory.to_string_lossy().into_owned(),
        })
    }

    /// Registers, and returns the work of serving.
    pub fn attach(&self, hub: &Arc<Hub>) -> impl Future<Output = ()> + Send + 'static {
        let (peer, outbox) = hub.connect(Role::Host, Dialect::JsonRpc);
        let registration = RegisterParams {
            runtime_id: Some(SANDBOX.to_owned()),
            title: SANDBOX.to_owned(),
            workspace_folders: vec![self.directory.clone()],
            methods: ["shell", "file", "action"]
                .into_iter()
                .flat_map(methods::names_of)
                .map(str::to_owned)
                .collect(),
            focused: false,
            edge: false,
        };
        let registered =
            hub.with_broker(|broker, now| broker.register_sandbox(peer, registration, now));
        registered.expect("the registration is well-formed");
        hub.settle();
        in_process::serve(Arc::new(self.clone()), Arc::clone(hub), peer, outbox)
    }

    /// Ends the shells with all their programs, and removes what they left on disk.
    pub async fn shut_down(self) {
        self.actions.shut_down().await;
        self.shells.shut_down().await;
        info!("the shells have ended");
    }
}

impl Respond for SandboxHost {
    async fn answer(&self, method: &str, params: Option<&RawValue>, caller: &Caller) -> Answer {
        let Self { shells, files, actions, .. } = self;
        match method {
            shell::Create::NAME => {
                write::<shell::Create>(&shells.create(read::<shell::Create>(params)?).await?)
            }
            shell::List::NAME => write::<shell::List>(&shells.list().await?),
            shell::Run::NAME => {
                write::<shell::Run>(&shells.run(read::<shell::Run>(params)?, caller).await?)
            }
            shell::Wait::NAME => {
                write::<shell::Wait>(&shells.wait(read::<shell::Wait>(params)?, caller).await?)
            }
            shell::Read::NAME => {
                write::<shell::Read>(&shells.read_output(read::<shell::Read>(params)?).await?)
            }
            shell::Input::NAME => {
                write::<shell::Input>(&shells.input(read::<shell::Input>(params)?).await?)
            }
            shell::Keys::NAME => {
                write::<shell::Keys>(&shells.keys(read::<shell::Keys>(params)?).await?)
            }
            shell::Signal::NAME => {
                write::<shell::Signal>(&shells.signal(read::<shell::Signal>(params)?).await?)
            }
            shell::Resize::NAME => {
                write::<shell::Resize>(&shells.resize(read::<shell::Resize>(params)?).await?)
            }
            shell::Close::NAME => {
                write::<shell::Close>(&shells.close(read::<shell::Close>(params)?).await?)
            }
            shell::Attach::NAME => {
                write::<shell::Attach>(&shells.attach(read::<shell::Attach>(params)?).await?)
            }
            Execute::NAME => {
                actions::print(&actions.execute(read::<Execute>(params)?, caller).await?)
            }
            Cancel::NAME => write::<Cancel>(&actions.cancel(&read::<Cancel>(params)?)?),
            file::Read::NAME => files.answer::<file::Read>(params, FileService::read).await,
            file::Write::NAME => files.answer::<file::Write>(params, FileService::write).await,
            file::Edit::NAME => files.answer::<file::Edit>(params, FileService::edit).await,
            file::Undo::NAME => files.answer::<file::Undo>(params, FileService::undo).await,
            file::List::NAME => files.answer::<file::List>(params, FileService::list).await,
            file::Glob::NAME => files.answer::<file::Glob>(params, FileService::glob).await,
            file::Grep::NAME => files.answer::<file::Grep>(params, FileService::grep).await,
            file::Stat::NAME => files.answer::<file::Stat>(params, FileService::stat).await,
            file::MakeDirectory::NAME => {
                files.answer::<file::MakeDirectory>(params, FileService::make_directory).await
            }
            file::RemoveDirectory::NAME => {
                files.answer::<file::RemoveDirectory>(params, FileService::remove_directory).await
            }
            file::Remove::NAME => files.answer::<file::Remove>(params, FileService::remove).await,
            file::Move::NAME => files.answer::<file::Move>(params, FileService::move_entry).await,
            file::Copy::NAME => files.answer::<file::Copy>(params, FileService::copy).await,
            _ => Err(ErrorKind::MethodNotFound.error(format!("Unknown request type: {method}"))),
        }
    }
}
