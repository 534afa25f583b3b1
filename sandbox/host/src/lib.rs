//! Serves the tools of a sandbox: shells that start in a workspace, its files, Python cells, and
//! web pages.
//!
//! [`Sandbox::answer`] takes the name of a tool and its params as text, and returns the answer as
//! text. The program `sandbox host` connects it to a broker; the OpenHands edge calls it in its own
//! process.
//!
//! Linux confines the file tools to the workspace. Shells run with the user's own rights: they
//! start in the workspace and can go anywhere, unless a policy confines them and the kernels of
//! cells.
//!
//! A caller that stops waiting does not stop a command. Dropping the answer (after a cancel, a
//! deadline or the end of the caller's connection) ends only the wait; the command goes on, and
//! another call can wait for it. A cancelled cell is interrupted; see [`Caller`].
//!
//! [`Sandbox::shut_down`] ends the shells. When the process is killed, they live on for the lease,
//! and the next [`Sandbox::open`] on the same state directory adopts them with their running
//! commands and their logs; see [`state`].

mod caller;
mod cell;
mod error;
mod file;
mod page;
mod shell;
pub mod state;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bridge_protocol::answer::{Answer, print_result, read_params, required, unknown_method};
use bridge_protocol::methods::shell::ShellName;
use bridge_protocol::methods::{
    self, Empty, MethodType, cell as cells, page as pages, shell as shells,
};
use bridge_protocol::{ErrorKind, WireError};
use sandbox_files::Workspace;
use sandbox_pages::{Browser, HtmlJob, PageJob};
use sandbox_shells::Config;
use sandbox_worker::{Assignment, Worker};
use serde_json::value::RawValue;

pub use caller::Caller;
pub use cell::CellSettings;
pub use file::FileService;
pub use shell::{MAX_SHELLS, ShellService};

use cell::CellService;
use file::LongJob;
use page::PageService;

/// The families of tools that a sandbox serves.
pub const FAMILIES: [&str; 4] = ["cell", "file", "page", "shell"];

/// The settings of a sandbox.
#[derive(Debug)]
pub struct Settings {
    /// The directory in which shells and kernels start.
    pub directory: PathBuf,
    /// The files that the file tools may touch. The policy in `shells` decides what commands may
    /// touch.
    pub workspace: Workspace,
    /// The shells: their state directory and their policy.
    pub shells: Config,
    /// How cells are run; `None` refuses them.
    pub cells: Option<CellSettings>,
    /// Renders web pages; `None` refuses them. It is not subject to the policy, so it would bypass
    /// a restricted network.
    pub browser: Option<Browser>,
}

/// Serves all tools of a sandbox; see the [crate](crate). Clones share everything.
#[derive(Clone, Debug)]
pub struct Sandbox {
    shells: Arc<ShellService>,
    files: Arc<FileService>,
    cells: Arc<CellService>,
    pages: Arc<PageService>,
}

impl Sandbox {
    /// Opens the services, and adopts the shells that an earlier owner of the state directory has
    /// left.
    pub async fn open(settings: Settings) -> Result<Self, sandbox_shells::Error> {
        let Settings { directory, workspace, shells, cells, browser } = settings;
        let worker = Worker::new(&shells.program);
        let shells = Arc::new(ShellService::open(shells, directory, workspace.clone()).await?);
        let cells = Arc::new(CellService::new(cells, Arc::clone(&shells)));
        let pages = Arc::new(PageService::new(browser, workspace.clone()));
        let files = Arc::new(FileService::new(workspace, worker));
        Ok(Self { shells, files, cells, pages })
    }

    /// The names of all tools that a sandbox serves.
    pub fn methods() -> impl Iterator<Item = &'static str> {
        FAMILIES.into_iter().flat_map(methods::names_of)
    }

    /// Answers one call. Dropping the future abandons the call; see [`Caller`].
    pub async fn answer(&self, method: &str, params: Option<&RawValue>, caller: &Caller) -> Answer {
        match method.split_once('/') {
            Some(("shell", _)) => self.answer_shell(method, params, caller).await,
            Some(("file", _)) => self.files.answer(method, params).await,
            Some(("cell", _)) => self.answer_cell(method, params, caller).await,
            Some(("page", _)) => self.answer_page(method, params).await,
            _ => Err(unknown_method(method)),
        }
    }

    /// Whether there are any shells, adopted ones included.
    pub async fn has_shells(&self) -> bool {
        self.shells.list().await.is_ok_and(|list| !list.shells.is_empty())
    }

    /// Starts the kernel of a shell before its first cell, so that the cell need not wait for it.
    /// If the start fails, the first cell tries again and reports the error.
    pub async fn warm_up(&self, shell: &ShellName) -> Result<(), WireError> {
        self.cells.warm_up(shell).await
    }

    /// Ends the kernels and the shells with all their programs, and removes the state directory.
    pub async fn shut_down(&self) {
        self.cells.shut_down().await;
        self.shells.shut_down().await;
    }

    async fn answer_shell(
        &self,
        method: &str,
        params: Option<&RawValue>,
        caller: &Caller,
    ) -> Answer {
        use shells::{Attach, Close, Create, Input, Keys, List, Read, Resize, Run, Signal, Wait};

        let service = &self.shells;
        match method {
            Create::NAME => {
                print_result::<Create>(&service.create(read_params::<Create>(params)?).await?)
            }
            List::NAME => print_result::<List>(&service.list().await?),
            Run::NAME => {
                print_result::<Run>(&service.run(read_params::<Run>(params)?, caller).await?)
            }
            Wait::NAME => {
                print_result::<Wait>(&service.wait(read_params::<Wait>(params)?, caller).await?)
            }
            Read::NAME => print_result::<Read>(&service.read(read_params::<Read>(params)?).await?),
            Input::NAME => {
                print_result::<Input>(&service.input(read_params::<Input>(params)?).await?)
            }
            Keys::NAME => print_result::<Keys>(&service.keys(read_params::<Keys>(params)?).await?),
            Signal::NAME => {
                print_result::<Signal>(&service.signal(read_params::<Signal>(params)?).await?)
            }
            Resize::NAME => {
                print_result::<Resize>(&service.resize(read_params::<Resize>(params)?).await?)
            }
            Close::NAME => print_result::<Close>(&self.close(read_params::<Close>(params)?).await?),
            Attach::NAME => {
                print_result::<Attach>(&service.attach(read_params::<Attach>(params)?).await?)
            }
            _ => Err(unknown_method(method)),
        }
    }

    /// Ends a shell and its kernel. A kernel can exist without a shell.
    async fn close(&self, params: shells::ShellRef) -> Result<Empty, WireError> {
        let name = params.shell.clone();
        let closed = self.shells.close(params).await;
        let had_kernel = self.cells.end(&name).await;
        match closed {
            Err(error) if had_kernel && error.code() == ErrorKind::NotFound.code() => Ok(Empty {}),
            closed => closed,
        }
    }

    async fn answer_cell(
        &self,
        method: &str,
        params: Option<&RawValue>,
        caller: &Caller,
    ) -> Answer {
        use cells::{Restart, Run};

        let service = &self.cells;
        match method {
            Run::NAME => {
                print_result::<Run>(&service.run(read_params::<Run>(params)?, caller).await?)
            }
            Restart::NAME => {
                print_result::<Restart>(&service.restart(read_params::<Restart>(params)?).await?)
            }
            _ => Err(unknown_method(method)),
        }
    }

    async fn answer_page(&self, method: &str, params: Option<&RawValue>) -> Answer {
        use pages::Browse;

        match method {
            Browse::NAME => {
                print_result::<Browse>(&self.pages.browse(read_params::<Browse>(params)?).await?)
            }
            _ => Err(unknown_method(method)),
        }
    }
}

/// Carries out a job that a sandbox has given to a helper process. Each program that opens a sandbox
/// has this behind the subcommand `work`.
pub fn work(assignment: &Assignment) -> io::Result<()> {
    let done = assignment
        .carry_out::<LongJob>()
        .or_else(|| assignment.carry_out::<PageJob>())
        .or_else(|| assignment.carry_out::<HtmlJob>());
    done.unwrap_or_else(|| Err(assignment.unknown()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
