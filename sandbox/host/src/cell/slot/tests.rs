//! Tests the order of cells with a program that imitates the kernel helper. The real kernel has
//! tests of its own.

use std::future;
use std::process::Command;

use tempfile::TempDir;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use super::*;

/// Imitates the kernel helper. The cell `wait` prints `up` and does not end by itself; any other
/// cell prints how many cells there were since the kernel's start. A new kernel takes some time to
/// start.
const PRETENDER: &str = r#"
case $2 in *find_spec*) exit 0;; esac
say() { printf '{"event":%s}\n' "$1"; }
tell() { say '"output","cell":'"$cell"',"output":{"stream":{"name":"stdout","text":"'"$1"'"}}'; }
finish() { say '"done","cell":'"$cell"',"status":"'"$1"'"'; }
read -r source
cells=0 waiting=
say '"ready"'
while read -r request; do
    case $request in
    *'"do":"execute"'*)
        [[ $request =~ '"cell":'([0-9]+) ]]
        cell=${BASH_REMATCH[1]}
        case $request in
        *'"code":"wait"'*) waiting=yes; tell up ;;
        *) tell $((++cells)); finish ok ;;
        esac ;;
    *'"do":"restart"'*)
        [ -z "$waiting" ] || { tell ' and away'; finish restarted; }
        cells=0 waiting=
        sleep 0.2
        say '"ready"' ;;
    esac
done
"#;

/// The longest time that anything may take.
const LIMIT: Duration = Duration::from_secs(30);

struct Fixture {
    home: TempDir,
    slot: KernelSlot,
}

type Ran = JoinHandle<Result<RunResult, Failure>>;

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let python = home.path().join("python");
        write_program(&python, PRETENDER);
        let settings = CellSettings { python: Some(python), ..CellSettings::default() };
        Self { home, slot: KernelSlot::new(Some(settings)) }
    }

    /// Starts a cell as a task. Tasks begin in order at the test's next await, because the test has
    /// one thread.
    fn begin(&self, code: &str, kernel: Wanted, output: Option<mpsc::Sender<String>>) -> Ran {
        let (slot, cwd) = (self.slot.clone(), self.home.path().to_owned());
        let (code, restart) = (code.to_owned(), kernel == Wanted::New);
        let cell = Cell { code, restart, cwd, limit: LIMIT };
        tokio::spawn(async move {
            let watch = Watch { output: output.as_ref(), cancelled: &SetOnce::new() };
            slot.run(cell, || future::ready(None), watch).await
        })
    }

    fn count(&self, kernel: Wanted) -> Ran {
        self.begin("count", kernel, None)
    }

    /// Starts a cell that does not end by itself, and waits until it is running.
    async fn running(&self) -> Ran {
        let (output, mut outputs) = mpsc::channel(1);
        let ran = self.begin("wait", Wanted::Same, Some(output));
        timeout(LIMIT, outputs.recv()).await.unwrap().unwrap();
        ran
    }
}

/// The kernel that a cell wants.
#[derive(PartialEq)]
enum Wanted {
    Same,
    New,
}

/// Lets the other tasks run as far as they can.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// The file is written by another process: a file that this process has open for writing cannot be
/// executed, and a fork in another thread may hold it open.
fn write_program(path: &Path, script: &str) {
    let write = "printf '#!/usr/bin/env bash\\n%s' \"$1\" >\"$0\" && chmod +x \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(path).arg(script).status();
    assert!(written.unwrap().success());
}

async fn end(ran: Ran) -> Result<RunResult, Failure> {
    timeout(LIMIT, ran).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_cell_with_a_new_kernel_is_the_first_one_there() {
    let fixture = Fixture::new();
    let running = fixture.running().await;
    let waiting = fixture.count(Wanted::Same);
    let restarting = fixture.count(Wanted::New);
    settle().await;
    let later = fixture.count(Wanted::Same);
    let ended = end(running).await.unwrap();
    assert_eq!((&*ended.text, ended.ended), ("up and away", CellEnding::KernelDied));
    let refused = end(waiting).await;
    assert!(matches!(refused, Err(Failure::Restarted)), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("run it again"));
    assert_eq!(end(restarting).await.unwrap().text, "1");
    assert_eq!(end(later).await.unwrap().text, "2");
    fixture.slot.end().await;
}

#[tokio::test]
async fn of_two_new_kernels_the_second_one_stays() {
    let fixture = Fixture::new();
    let running = fixture.running().await;
    let first = fixture.count(Wanted::New);
    let second = fixture.count(Wanted::New);
    assert_eq!(end(running).await.unwrap().ended, CellEnding::KernelDied);
    let refused = end(first).await;
    assert!(matches!(refused, Err(Failure::Restarted)), "{refused:?}");
    assert_eq!(end(second).await.unwrap().text, "1");
    fixture.slot.end().await;
}

/// A shell that is slow to report its exports does not block a cell that is cancelled or out of
/// time.
#[tokio::test]
async fn the_wait_for_exports_can_be_cancelled() {
    let fixture = Fixture::new();
    let cancelled = SetOnce::new();
    let watch = Watch { output: None, cancelled: &cancelled };
    let run = |time_limit: Duration| {
        let (cwd, limit) = (fixture.home.path().to_owned(), time_limit);
        let cell = Cell { code: String::new(), restart: false, cwd, limit };
        timeout(LIMIT, fixture.slot.run(cell, future::pending, watch))
    };
    let late = run(Duration::from_millis(20)).await.unwrap();
    assert!(matches!(late, Err(Failure::TimedOut(_))), "{late:?}");
    let (ran, ()) = tokio::join!(run(LIMIT * 2), async {
        settle().await;
        cancelled.set(()).unwrap();
    });
    let ran = ran.unwrap();
    assert!(matches!(ran, Err(Failure::Cancelled)), "{ran:?}");
    assert_eq!(end(fixture.count(Wanted::Same)).await.unwrap().text, "1");
    fixture.slot.end().await;
}
