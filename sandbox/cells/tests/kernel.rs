//! Tests with a real IPython kernel, in a Python environment that `scripts/setup-kernel` makes.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use process_identity::ProcessId;
use sandbox_cells::{
    CellEnd, CellOutput, CellResult, Error, ExecuteOptions, Kernel, KernelSpec, find_python,
};
use sandbox_test_support::{kernel_python, processes_with, test, within};
use tempfile::TempDir;
use tokio::sync::mpsc;

fn python() -> &'static Path {
    Path::new(kernel_python())
}

/// Starts a kernel with a home directory of its own and these variables.
async fn start(home: &TempDir, variables: &[(&str, &str)]) -> Kernel {
    let mut spec = KernelSpec { python: Some(python().into()), ..in_home(home) };
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    spec.environment.get_or_insert_default().extend(variables);
    within("starting a kernel", Kernel::start(spec)).await.unwrap()
}

fn in_home(home: &TempDir) -> KernelSpec {
    // Independent of the user's profile, which must not change either.
    let own = [("HOME".into(), home.path().into())];
    let environment = Some(env::vars_os().chain(own).collect());
    KernelSpec { environment, ..KernelSpec::in_directory(home.path()) }
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn run(kernel: &Kernel, code: &str) -> CellResult {
    run_with(kernel, code, ExecuteOptions::default()).await
}

async fn run_with(kernel: &Kernel, code: &str, options: ExecuteOptions) -> CellResult {
    within("running a cell", kernel.execute(code, options)).await.unwrap()
}

#[test]
fn cells_share_a_state_and_say_things_in_order() {
    test(async {
        let home = home();
        let kernel = start(&home, &[("GREETING", "good day")]).await;
        assert_eq!(kernel.python(), python());
        let result = run(&kernel, "x = 6").await;
        assert_eq!((result.text().as_str(), result.ended), ("", CellEnd::Finished));
        assert_eq!(result.execution_count, Some(1));
        let code = "import sys, os
print('one'); print('two', file=sys.stderr); print('three')
from IPython.display import display
display('four')
x * 7";
        let result = run(&kernel, code).await;
        let streams = result.outputs.iter().filter_map(|output| match output {
            CellOutput::Stream { name, text } => Some((name.as_str(), text.as_str())),
            _ => None,
        });
        let printed: Vec<_> = streams.collect();
        assert!(printed.contains(&("stderr", "two\n")), "{printed:?}");
        let out = printed.iter().filter(|(name, _)| *name == "stdout").map(|(_, text)| *text);
        assert_eq!(out.collect::<String>(), "one\nthree\n");
        assert!(result.text().ends_with("'four'42"), "{:?}", result.text());
        assert_eq!(run(&kernel, "os.environ['GREETING']").await.text(), "'good day'");
        assert_eq!(run(&kernel, "!echo from a shell").await.text(), "from a shell\r\n");
        // NUL, and characters that are not valid in UTF-8.
        assert_eq!(run(&kernel, "print('ü 日本 🎉 \\x00')").await.text(), "ü 日本 🎉 \0\n");
        assert_eq!(run(&kernel, "print('\\ud800')").await.ended, CellEnd::Finished);
        within("the end", kernel.shut_down()).await;
        assert!(matches!(
            kernel.execute("1", ExecuteOptions::default()).await,
            Err(Error::Ended { .. })
        ));
        within("a second end", kernel.shut_down()).await;
    });
}

#[test]
fn exceptions_are_results() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        let result = run(&kernel, "print('before'); 1/0").await;
        assert_eq!(result.ended, CellEnd::Raised);
        let Some(CellOutput::Error { ename, evalue, traceback }) = result.outputs.last() else {
            panic!("{result:?}")
        };
        assert_eq!((ename.as_str(), evalue.as_str()), ("ZeroDivisionError", "division by zero"));
        assert!(traceback.concat().contains("1/0"), "{traceback:?}");
        assert!(!result.text().contains('\x1b'), "no colours: {:?}", result.text());
        assert!(result.text().starts_with("before\n"));
        assert_eq!(run(&kernel, "if then").await.ended, CellEnd::Raised, "bad syntax");
        let result = run(&kernel, "input('name? ')").await;
        assert!(result.text().contains("StdinNotImplementedError"), "{:?}", result.text());
        assert_eq!(run(&kernel, "40 + 2").await.text(), "42");
        kernel.shut_down().await;
    });
}

/// The smallest PNG: one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn pictures_are_data() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        let code = format!(
            "import base64; from IPython.display import Image, display
display(Image(data=base64.b64decode('{PIXEL}'), format='png'))
display({{'text/html': '<b>x</b>', 'application/json': {{'a': [1]}}}}, raw=True)"
        );
        let result = run(&kernel, &code).await;
        let images: Vec<_> = result.images().collect();
        assert_eq!(images.len(), 1, "{result:?}");
        assert_eq!((images[0].0, images[0].1.trim_end()), ("image/png", PIXEL));
        let Some(CellOutput::Display { data }) = result.outputs.last() else {
            panic!("{result:?}")
        };
        assert_eq!(data["text/html"], "<b>x</b>");
        assert_eq!(data["application/json"]["a"][0], 1);
        kernel.shut_down().await;
    });
}

#[test]
fn outputs_come_while_the_cell_runs_and_none_is_lost() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        within("making a gate", async {
            assert!(
                Command::new("mkfifo").arg(home.path().join("gate")).status().unwrap().success()
            );
        })
        .await;
        let (subscriber, mut outputs) = mpsc::unbounded_channel();
        let options = ExecuteOptions { subscriber: Some(subscriber), ..Default::default() };
        let running = {
            let kernel = kernel.clone();
            tokio::task::spawn_local(async move {
                run_with(&kernel, "print('up', flush=True); open('gate').read()", options).await
            })
        };
        let first = within("the first output", outputs.recv()).await.unwrap();
        assert_eq!(first.text(), "up\n");
        assert!(!running.is_finished());
        let error = kernel.execute("1", ExecuteOptions::default()).await.unwrap_err();
        assert!(matches!(error, Error::Busy { cell: 1 }), "{error}");
        fs::write(home.path().join("gate"), "go").unwrap();
        assert_eq!(running.await.unwrap().text(), "up\n'go'");

        let code = "from IPython.display import display
for i in range(5000): display(i)";
        assert_eq!(run(&kernel, code).await.outputs.len(), 5000);
        // Larger than the limit: both ends are kept, the rest is counted, and the kernel survives.
        let much = "big = 'begin' + 'x' * 30_000_000 + ' end'";
        run(&kernel, much).await;
        for code in [
            "print('begin')\nfor i in range(40): print('x' * 1_000_000)\nraise Exception('the end')",
            "print(big)",
            "print(big[5:]); raise Exception(big)",
            "big",
        ] {
            let result = run(&kernel, code).await;
            let text = result.text();
            assert!((10_000_000..13 << 20).contains(&text.len()), "{code}: {}", text.len());
            assert!(text.len() as u64 + result.omitted_bytes() >= 30_000_000, "{code}");
            assert!(text.trim_end().trim_end_matches('\'').ends_with(" end"), "{code}");
            assert!(
                text.contains(&format!("[{} bytes of output were omitted", result.omitted_bytes()))
            );
        }
        assert_eq!(run(&kernel, "'still here'").await.text(), "'still here'");
        kernel.shut_down().await;
    });
}

#[test]
fn the_directory_follows_the_caller() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        let place = |path: &Path| format!("{:?}", path.to_str().unwrap()).replace('"', "'");
        let start = home.path().canonicalize().unwrap();
        assert_eq!(run(&kernel, "import os; os.getcwd()").await.text(), place(&start));
        let odd = home.path().join("it's \"odd\" \\ ü");
        fs::create_dir(&odd).unwrap();
        let there = || ExecuteOptions { cwd: Some(odd.clone()), ..Default::default() };
        let code = "os.path.basename(os.getcwd()) == 'it\\'s \"odd\" \\\\ ü'";
        assert_eq!(run_with(&kernel, code, there()).await.text(), "True");
        // A cell may change the directory, until the caller asks for another.
        run_with(&kernel, "os.chdir('/')", there()).await;
        assert_eq!(run_with(&kernel, "os.getcwd()", there()).await.text(), "'/'");
        let usr = ExecuteOptions { cwd: Some("/usr".into()), ..Default::default() };
        assert_eq!(run_with(&kernel, "os.getcwd()", usr).await.text(), "'/usr'");
        let missing = ExecuteOptions { cwd: Some("/no/such/place".into()), ..Default::default() };
        let error = kernel.execute("os.mkdir('made')", missing).await.unwrap_err();
        assert!(matches!(error, Error::Directory { .. }), "{error}");
        assert!(error.to_string().contains("/no/such/place"), "{error}");
        assert_eq!(run(&kernel, "os.getcwd()").await.text(), "'/usr'", "the cell was not run");
        kernel.shut_down().await;
    });
}

#[test]
fn time_limits_and_interrupts_end_a_cell_and_keep_the_state() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        run(&kernel, "import time, subprocess; x = 1").await;
        let short =
            || ExecuteOptions { timeout: Some(Duration::from_millis(300)), ..Default::default() };
        let result = run_with(&kernel, "print('begun'); time.sleep(600)", short()).await;
        assert_eq!(result.ended, CellEnd::TimedOut);
        assert!(
            result.text().starts_with("begun\n") && result.text().contains("KeyboardInterrupt")
        );
        let result = run_with(&kernel, "subprocess.run(['sleep', '601'])", short()).await;
        assert_eq!(result.ended, CellEnd::TimedOut, "also what a cell waits for");

        let (subscriber, mut outputs) = mpsc::unbounded_channel();
        let options = ExecuteOptions { subscriber: Some(subscriber), ..Default::default() };
        let cell = run_with(&kernel, "print('up', flush=True); time.sleep(602)", options);
        let interrupt = async {
            within("the cell's start", outputs.recv()).await.unwrap();
            kernel.interrupt().await.unwrap();
        };
        let (result, ()) = tokio::join!(cell, interrupt);
        assert_eq!(result.ended, CellEnd::Raised);
        assert_eq!(run(&kernel, "x").await.text(), "1");
        kernel.interrupt().await.unwrap();
        assert_eq!(run(&kernel, "x").await.text(), "1", "an idle kernel is not disturbed");

        // A cell that ignores interrupts is reported, and only a restart ends it.
        let stubborn = "import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(603)";
        let result = run_with(&kernel, stubborn, short()).await;
        assert_eq!(result.ended, CellEnd::Stuck);
        let error = kernel.execute("x", ExecuteOptions::default()).await.unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error}");
        within("the restart", kernel.restart(None)).await.unwrap();
        assert_eq!(run(&kernel, "'x' in globals()").await.text(), "False");
        kernel.shut_down().await;
        assert_eq!(processes_with(home.path().to_str().unwrap()), [""; 0]);
    });
}

/// A cell may catch one interrupt and finish its work; only repeated interrupts end it in any case.
#[test]
fn an_interrupt_comes_once_unless_the_cell_has_to_end() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        run(&kernel, "import time").await;
        // Longer than the interval between repeated interrupts.
        for (must_end, seconds, ended) in
            [(false, "1.5", CellEnd::Finished), (true, "607", CellEnd::Raised)]
        {
            let code = format!(
                "try: print('up', flush=True); time.sleep(607)
except KeyboardInterrupt: time.sleep({seconds})"
            );
            let (subscriber, mut outputs) = mpsc::unbounded_channel();
            let options = ExecuteOptions { subscriber: Some(subscriber), ..Default::default() };
            let cell = run_with(&kernel, &code, options);
            let interrupt = async {
                within("the cell's start", outputs.recv()).await.unwrap();
                match must_end {
                    false => kernel.interrupt().await.unwrap(),
                    true => kernel.end_cell().await.unwrap(),
                }
            };
            let (result, ()) = tokio::join!(cell, interrupt);
            assert_eq!(result.ended, ended, "{}", result.text());
        }
        kernel.shut_down().await;
    });
}

#[test]
fn a_restart_or_a_death_gives_a_new_kernel() {
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        let options = ExecuteOptions { cwd: Some("/usr".into()), ..Default::default() };
        run_with(&kernel, "import os; x = 1", options).await;
        within("the restart", kernel.restart(None)).await.unwrap();
        let result = run(&kernel, "import os; ('x' in globals(), os.getcwd())").await;
        let start = home.path().canonicalize().unwrap();
        assert_eq!(result.text(), format!("(False, '{}')", start.display()));

        let (subscriber, mut outputs) = mpsc::unbounded_channel();
        let options = ExecuteOptions { subscriber: Some(subscriber), ..Default::default() };
        let code = "import time; print('up', flush=True); time.sleep(604)";
        let cell = run_with(&kernel, code, options);
        let restart = async {
            within("the cell's start", outputs.recv()).await.unwrap();
            within("the restart", kernel.restart(None)).await.unwrap();
        };
        let (result, ()) = tokio::join!(cell, restart);
        assert_eq!((result.text().as_str(), result.ended), ("up\n", CellEnd::Restarted));

        for death in ["import os; os._exit(3)", "import os; os.kill(os.getpid(), 9)"] {
            assert_eq!(run(&kernel, death).await.ended, CellEnd::KernelDied);
            assert_eq!(run(&kernel, "6 * 7").await.text(), "42", "after {death}");
        }
        kernel.shut_down().await;
        assert_eq!(processes_with(home.path().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn a_python_without_a_kernel_is_named_with_the_remedy() {
    test(async {
        let home = home();
        let (bare, sick) = (home.path().join("bare"), home.path().join("sick"));
        write_program(&bare, "exit 77");
        write_program(&sick, "exit 1");
        let install = format!("{} -m pip install ipykernel", bare.display());
        for (python, remedy) in [
            (bare, &*install),
            (sick, "repair it"),
            (home.path().join("missing"), "correct the path"),
        ] {
            let spec = KernelSpec { python: Some(python.clone()), ..in_home(&home) };
            let error = Kernel::start(spec).await.unwrap_err().to_string();
            let name = python.display().to_string();
            assert!(error.contains(remedy) && error.contains(&name), "{error}");
            assert!(error.contains("--kernel-python"), "{error}");
        }
        assert_eq!(find_python(Some(python()), None).await.unwrap(), python());
        // A Python whose kernel does not start: the error contains its standard error.
        let broken = home.path().join("broken");
        let script = "case $2 in *find_spec*) exit 0;; esac; echo out of order >&2; exit 1";
        write_program(&broken, script);
        let spec = KernelSpec { python: Some(broken), ..in_home(&home) };
        let error = within("the failure", Kernel::start(spec)).await.unwrap_err();
        assert!(matches!(error, Error::DidNotStart { .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains("out of order") && error.contains("--kernel-python"), "{error}");
    });
}

/// The file is written by another process: a file that this process has open for writing cannot be
/// executed, and a fork in another thread may hold it open.
fn write_program(path: &Path, script: &str) {
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod +x \"$0\"";
    assert!(
        Command::new("sh").args(["-c", write]).arg(path).arg(script).status().unwrap().success()
    );
}

const OWNER: &str = "SANDBOX_TEST_KERNEL_OWNER";

/// Not a test of its own: the owner process that the next test kills.
#[test]
fn owner() {
    if env::var_os(OWNER).is_none() {
        return;
    }
    test(async {
        let home = home();
        let kernel = start(&home, &[]).await;
        let code = "import subprocess, time; subprocess.Popen(['setsid', 'sleep', '605'])";
        run(&kernel, code).await;
        eprintln!("\nup {}", home.path().display());
        let options = ExecuteOptions::default();
        kernel.execute("time.sleep(606)", options).await.unwrap();
    });
}

#[test]
fn a_killed_owner_or_helper_leaves_nothing_behind() {
    for victim in ["owner", "helper"] {
        test(async {
            let mark = format!("{:016x}", rand::random::<u64>());
            let mut owner = Command::new(env::current_exe().unwrap())
                .args(["--exact", "owner", "--nocapture"])
                .env(OWNER, &mark)
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(owner.stderr.take().unwrap()).lines();
            let mut lines = lines.map(Result::unwrap);
            let home = lines.find_map(|line| line.strip_prefix("up ").map(PathBuf::from)).unwrap();
            let found = processes_with(&mark);
            let pid = |line: &String| line.split(':').next().unwrap().parse::<u32>().unwrap();
            let processes: Vec<_> = found.iter().map(pid).filter_map(ProcessId::of).collect();
            // Owner, helper, kernel and the sleeping program.
            assert!(processes.len() >= 4, "{found:?}");
            let helper = found.iter().find(|line| line.contains("kernel helper")).unwrap();
            let directory = helper.split(' ').find(|word| word.contains("/kernel-")).unwrap();
            assert!(Path::new(directory).is_dir());
            let target = if victim == "owner" { owner.id() } else { pid(helper) };
            Command::new("kill").args(["-9", &target.to_string()]).status().unwrap();
            for process in processes {
                within("the end of what the owner has started", process.ended()).await.unwrap();
            }
            owner.wait().unwrap();
            assert!(!Path::new(directory).exists());
            assert_eq!(processes_with(&mark), [""; 0]);
            // Best effort: the killed owner has left its directory.
            let _ = fs::remove_dir_all(home);
        });
    }
}
