//! Measures what confinement and atomic replacement cost, compared with plain `std::fs`.
//!
//! Run with `cargo run --release -p sandbox-files --example files_bench [DIRECTORY]`. The two sides
//! of each pair take turns, so that other load on the machine affects both. A row shows the median
//! time of each and the ratio. Writing is compared with the same steps done by hand (temporary
//! file, mode of the old file, rename). The bare `std::fs::write`, which may leave half a file
//! behind, and the cost of syncing have rows of their own.

#![allow(clippy::print_stdout)] // the table is the purpose

use std::error::Error;
use std::fs::{self, File, Permissions};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandbox_files::{
    Durability, LineRange, READ_BYTES, Workspace, WriteOptions, read_bytes, read_text, write,
};

type Outcome = Result<(), Box<dyn Error>>;

/// Label, size in bytes, operations per measurement, and number of measurements.
const SIZES: [(&str, usize, u32, usize); 2] =
    [("1 KiB", 1024, 50, 400), ("10 MiB", 10 * 1024 * 1024, 1, 60)];

fn main() -> Outcome {
    let base = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = base.join(format!("files-bench-{}", std::process::id()));
    fs::create_dir(&directory)?;
    let outcome = measure_all(&directory);
    fs::remove_dir_all(&directory)?;
    outcome
}

fn measure_all(directory: &Path) -> Outcome {
    let workspace = Workspace::confined(directory)?;
    println!("{:40} {:>12} {:>12} {:>7}", "", "ours", "std::fs", "ratio");
    for (label, size, batch, rounds) in SIZES {
        let line = b"A line of text, as files have them.\n";
        let bytes: Vec<u8> = line.iter().copied().cycle().take(size).collect();
        let real = directory.join("file");
        fs::write(&real, &bytes)?;
        let path = workspace.path("file")?;
        let unsynced = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
        let often = (batch, rounds);
        compare(
            &format!("{label} read"),
            often,
            &mut || used(read_bytes(&path, READ_BYTES)?),
            &mut || used(fs::read(&real)?),
        )?;
        compare(
            &format!("{label} read as text"),
            often,
            &mut || used(read_text(&path, LineRange::All, READ_BYTES)?),
            &mut || used(fs::read_to_string(&real)?),
        )?;
        compare(
            &format!("{label} write, same steps"),
            often,
            &mut || used(write(&path, &bytes, unsynced)?),
            &mut || replace_by_hand(&real, &bytes, Durability::Unsynced),
        )?;
        compare(
            &format!("{label} write, bare std::fs::write"),
            often,
            &mut || used(write(&path, &bytes, unsynced)?),
            &mut || Ok(fs::write(&real, &bytes)?),
        )?;
        compare(
            &format!("{label} write and sync, same steps"),
            (1, rounds.min(60)),
            &mut || used(write(&path, &bytes, WriteOptions::default())?),
            &mut || replace_by_hand(&real, &bytes, Durability::Synced),
        )?;
    }
    println!("Syncing costs the difference between the last row of a size and its third.");
    Ok(())
}

/// Replaces a file as a careful program does with `std::fs` alone.
fn replace_by_hand(real: &Path, bytes: &[u8], durability: Durability) -> Outcome {
    let temporary = real.with_file_name(".file.tmp");
    let mode = fs::symlink_metadata(real)?.mode();
    let mut file = File::create_new(&temporary)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    if durability == Durability::Synced {
        file.sync_all()?;
    }
    fs::rename(&temporary, real)?;
    Ok(())
}

/// Keeps the compiler from removing the work.
fn used<T>(value: T) -> Outcome {
    black_box(value);
    Ok(())
}

/// Runs both sides in turns and prints the medians.
fn compare<'a>(
    label: &str,
    (batch, rounds): (u32, usize),
    ours: &mut (dyn FnMut() -> Outcome + 'a),
    theirs: &mut (dyn FnMut() -> Outcome + 'a),
) -> Outcome {
    let runs = [ours, theirs];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds + 2 {
        // The order alternates, since the second side finds warmer caches.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for who in order {
            let start = Instant::now();
            for _ in 0..batch {
                runs[who]()?;
            }
            // The first rounds only warm up.
            if round >= 2 {
                times[who].push(start.elapsed() / batch);
            }
        }
    }
    let [ours, theirs] = times.map(median);
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{label:40} {:>12} {:>12} {ratio:>7.2}", shown(ours), shown(theirs));
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn shown(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}
