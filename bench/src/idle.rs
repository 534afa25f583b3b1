//! CPU time and memory of an idle shell.

use std::time::Duration;

use anyhow::{Result, ensure};
use sandbox_shells::{Config, Shells, Wait};

use crate::Run;
use crate::process::{built, cpu, resident_kib, with_argument};
use crate::report::{Figure, Report, Target};
use crate::shells::spec;

const WATCHED: Duration = Duration::from_secs(5);
/// Time that a shell needs to reach its prompt after it has reported a result.
const SETTLING: Duration = Duration::from_millis(500);
/// Names of processes by a part of their arguments. The first match counts.
const PARTS: [(&str, &str); 5] = [
    ("tmux server and client, for all shells", " new-session "),
    ("recorder", " record "),
    ("keeper, one for all shells", "/bin/sh -c exec "),
    ("bash's parent", "/bin/sh -c trap "),
    ("bash", " --rcfile "),
];

pub fn measure(run: &mut Run) -> Result<()> {
    let program = built("sandbox-host", "sandbox")?;
    let Run { report, runtime, .. } = run;
    runtime.block_on(async {
        let directory = tempfile::tempdir()?;
        let root = directory.path().join("root");
        let shells = Shells::open(Config::new(&root, &program)).await?;
        let session = shells.create(spec(directory.path())).await?;
        session.run("echo hi").await?.wait(Wait::forever()).await?;
        let measured = watch(report, &root.to_string_lossy()).await;
        shells.shut_down().await?;
        measured
    })
}

async fn watch(report: &mut Report, root: &str) -> Result<()> {
    let processes = with_argument(root);
    let used = || processes.iter().map(|(pid, _)| cpu(*pid)).sum::<Result<Duration>>();
    tokio::time::sleep(SETTLING).await;
    let before = used()?;
    tokio::time::sleep(WATCHED).await;
    let used = used()? - before;
    let group = format!("Shell, idle: CPU of all its processes in {} s, in ms", WATCHED.as_secs());
    let figure = Figure::new("Run Bridge shell", Some(&vec![used.as_secs_f64() * 1e3]));
    report.add(&group, figure.with_target(Target::at_most(0.0, 0.0)));
    for (name, argument) in PARTS {
        let part = |(_, arguments): &&(u32, String)| {
            PARTS.iter().find(|(_, known)| arguments.contains(known)) == Some(&(name, argument))
        };
        let part: Vec<_> = processes.iter().filter(part).collect();
        ensure!(!part.is_empty(), "there is no {name}");
        let kib = part.iter().map(|(pid, _)| resident_kib(*pid)).sum::<Result<f64>>()?;
        let figure = Figure::new(name, Some(&vec![kib / 1024.0]));
        report.add(
            "Shell, idle: memory (resident, MiB; most is shared with other processes)",
            figure,
        );
    }
    Ok(())
}
