//! What the kernel says about a server.

use std::fs;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use super::world::{now, pause};
use crate::support::Server;

/// The share of one core that it uses over a while.
pub fn busy(server: &Server, span: Duration) -> f64 {
    let begun = now();
    let before = ticks(server);
    pause(span);
    let used = (ticks(server) - before) as f64 / ticks_a_second();
    used * 1_000.0 / (now() - begun) as f64
}

/// User and system time so far.
fn ticks(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    // Its name may hold anything; what follows the last bracket may not.
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn ticks_a_second() -> f64 {
    sysconf(SysconfVar::CLK_TCK).unwrap().unwrap() as f64
}

/// Memory in use, in KiB.
pub fn memory(server: &Server) -> u64 {
    status(server, "VmRSS:")
}

/// The most that was in use at any time, in KiB.
pub fn memory_most(server: &Server) -> u64 {
    status(server, "VmHWM:")
}

fn status(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse().unwrap()
}
