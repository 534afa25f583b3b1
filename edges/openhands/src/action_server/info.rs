//! Measures the server process, for `/server_info`.

use std::{fs, time::Instant};

use process_identity::Stat;
use rustix::{fs::statvfs, param::clock_ticks_per_second};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct ServerInfo {
    uptime: f64,
    idle_time: f64,
    resources: Resources,
}

#[derive(Debug, Serialize)]
struct Resources {
    cpu_percent: f64,
    memory: Memory,
    disk: Disk,
    io: Io,
}

#[derive(Debug, Serialize, Default)]
struct Memory {
    rss: u64,
    vms: u64,
    percent: f64,
}

#[derive(Debug, Serialize, Default)]
struct Disk {
    total: u64,
    used: u64,
    free: u64,
    percent: f64,
}

#[derive(Debug, Serialize, Default)]
struct Io {
    read_bytes: u64,
    write_bytes: u64,
}

impl ServerInfo {
    /// Measures now. The CPU load is the mean since the start, so that no second measurement is
    /// needed.
    pub(super) fn take(started: Instant, last_action: Instant) -> Self {
        let uptime = started.elapsed().as_secs_f64();
        Self {
            uptime,
            idle_time: last_action.elapsed().as_secs_f64(),
            resources: Resources {
                cpu_percent: percent(cpu_seconds().unwrap_or(0.0), uptime),
                memory: memory().unwrap_or_default(),
                disk: disk().unwrap_or_default(),
                io: io().unwrap_or_default(),
            },
        }
    }
}

fn cpu_seconds() -> Option<f64> {
    let ticks = Stat::of(std::process::id())?.cpu_ticks;
    Some(float(ticks) / float(clock_ticks_per_second()))
}

fn memory() -> Option<Memory> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').map(|field| field.parse::<u64>().ok());
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    let (vms, rss) = (pages.next()?? * page, pages.next()?? * page);
    let total = value(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")? << 10;
    Some(Memory { rss, vms, percent: percent(float(rss), float(total)) })
}

fn disk() -> Option<Disk> {
    let state = statvfs("/").ok()?;
    let total = state.f_blocks * state.f_frsize;
    let used = (state.f_blocks - state.f_bfree) * state.f_frsize;
    let free = state.f_bavail * state.f_frsize;
    Some(Disk { total, used, free, percent: percent(float(used), float(used + free)) })
}

fn io() -> Option<Io> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    Some(Io { read_bytes: value(&io, "read_bytes:")?, write_bytes: value(&io, "write_bytes:")? })
}

/// The number after a name at the beginning of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole * 1000.0).round() / 10.0 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "these are figures for people")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_plausible() {
        let info = ServerInfo::take(Instant::now(), Instant::now());
        assert!(info.uptime >= 0.0 && info.idle_time >= 0.0);
        let Resources { memory, disk, .. } = info.resources;
        assert!(memory.rss > 1 << 20 && memory.vms >= memory.rss, "{memory:?}");
        assert!(memory.percent > 0.0 && memory.percent < 100.0, "{memory:?}");
        assert!(disk.total >= disk.used && disk.percent <= 100.0, "{disk:?}");
        assert!(cpu_seconds().is_some() && io().is_some());
    }
}
