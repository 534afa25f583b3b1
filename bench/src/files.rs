//! Compares file operations of the sandbox with those of the standard library, which neither confine paths to
//! a workspace nor replace a file atomically.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sandbox_files::{
    Durability, Editor, LineRange, Workspace, WriteOptions, read_bytes, read_text, write,
};

use crate::Run;
use crate::owner::directory_in_memory;
use crate::process::root;
use crate::report::{Figure, Target, median_of};
use crate::series::Series;

const STD: &str = "std::fs";
const OURS: &str = "Run Bridge";
/// The line that is edited, its replacement, and the line that fills the rest of the file.
const FIRST: &str = "the first line.\n";
const OTHER: &str = "another line...\n";
const OTHER_LINES: &str = "0123456789abcde\n";
/// Name of a size, bytes, measurements in a row, and rows in each round.
const SIZES: [(&str, usize, usize, usize); 2] =
    [("1 KiB", 1024, 20, 10), ("10 MiB", 10 * 1024 * 1024, 4, 2)];

/// Operations that have a target. The others have none: syncing mostly measures the disk, reading as text also
/// detects the encoding and counts lines, and an edit keeps the old text.
const JUDGED: [&str; 2] = ["write", "read"];
/// Targets apply to a disk, because workspaces are on disks. Memory shows the cost of the calls alone.
const DISK: &str = "on a disk";
const MEMORY: &str = "in memory";

pub fn measure(run: &mut Run) -> Result<()> {
    let Run { report, rounds, .. } = run;
    let places =
        [(DISK, tempfile::tempdir_in(root().join("target"))?), (MEMORY, directory_in_memory()?)];
    let mut series = Series::default();
    for _ in 0..*rounds {
        for (place, directory) in &places {
            measure_in(&mut series, place, directory.path())?;
        }
    }
    for (size, ..) in SIZES {
        for what in ["write", "write and sync", "read", "read as text", "edit"] {
            for (place, _) in &places {
                let group = format!("File, {what}, {size} {place}: p50 in µs, and × std::fs");
                let key = format!("{what} {size} {place}");
                for arm in [STD, OURS] {
                    let judged = arm == OURS && JUDGED.contains(&what) && *place == DISK;
                    let target = judged.then(|| Target::at_most(1.3, 1.3));
                    let figure = Figure::new(arm, series.get(&key, arm));
                    report.add(&group, figure.with_ratios(series.ratios(&key, arm, STD), target));
                }
            }
        }
    }
    Ok(())
}

fn measure_in(series: &mut Series, place: &str, directory: &Path) -> Result<()> {
    let workspace = Workspace::confined(directory)?;
    // Do not sync, because that mostly measures the disk; synced writes have a group of their own.
    let unsynced = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
    for (size, bytes, in_a_row, rows) in SIZES {
        let content = FIRST.to_owned() + &OTHER_LINES.repeat(bytes / 16 - 1);
        let (plain, path) = (directory.join("plain"), workspace.path("ours")?);
        let limit = bytes as u64;
        let mut compare =
            |what: &str, std: &dyn Fn() -> Result<()>, ours: &dyn Fn() -> Result<()>| {
                // Several measurements of one arm in a row, because a write leaves work to the operating
                // system that slows down the next measurement. So that is mostly one of the same arm.
                let mut times = [Vec::new(), Vec::new()];
                for _ in 0..rows {
                    for (times, work) in times.iter_mut().zip([std, ours]) {
                        for _ in 0..in_a_row {
                            times.push(timed(work)?);
                        }
                    }
                }
                for (arm, times) in [STD, OURS].into_iter().zip(times) {
                    series.add(format!("{what} {size} {place}"), arm, median_of(times) * 1e6);
                }
                Ok::<_, anyhow::Error>(())
            };
        compare("write", &|| Ok(fs::write(&plain, &content)?), &|| {
            write(&path, content.as_bytes(), unsynced)?;
            Ok(())
        })?;
        compare("write and sync", &|| synced(&plain, content.as_bytes()), &|| {
            write(&path, content.as_bytes(), WriteOptions::default())?;
            Ok(())
        })?;
        compare("read", &|| ensure_length(fs::read(&plain)?.len(), bytes), &|| {
            ensure_length(read_bytes(&path, limit)?.len(), bytes)
        })?;
        compare(
            "read as text",
            &|| ensure_length(fs::read_to_string(&plain)?.len(), bytes),
            &|| ensure_length(read_text(&path, LineRange::All, limit)?.content.len(), bytes),
        )?;
        let editor = Editor::default();
        // Each edit is followed by its reverse, so that the text to replace is there each time. Edits are
        // synced.
        compare(
            "edit",
            &|| {
                let text = fs::read_to_string(&plain)?;
                for (old, new) in [(FIRST, OTHER), (OTHER, FIRST)] {
                    synced(&plain, text.replacen(old, new, 1).as_bytes())?;
                }
                Ok(())
            },
            &|| {
                editor.replace_once(&path, FIRST, OTHER)?;
                editor.replace_once(&path, OTHER, FIRST)?;
                Ok(())
            },
        )?;
    }
    Ok(())
}

fn timed(work: &dyn Fn() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn synced(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(content)?;
    Ok(file.sync_all()?)
}

fn ensure_length(read: usize, wanted: usize) -> Result<()> {
    ensure!(black_box(read) == wanted, "read {read} of {wanted} bytes");
    Ok(())
}
