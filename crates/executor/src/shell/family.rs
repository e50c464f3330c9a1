//! All processes that descend from this one, and how they are ended.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often it is looked again for processes that were started meanwhile.
const PASSES_MAX: usize = 1_000;

/// Whether this kernel says who a process's children are.
pub(super) fn is_known() -> io::Result<()> {
    let me = std::process::id();
    fs::read_to_string(format!("/proc/{me}/task/{me}/children")).map(|_| ())
}

/// Bytes that this process, and all descendants that have been waited for, have read from storage and written for it. None
/// where the kernel does not count that (`CONFIG_TASK_IO_ACCOUNTING`).
pub(super) fn moved() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let of = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    Some((of("read_bytes:")?, of("write_bytes:")?))
}

/// The children of all threads of a process.
fn children(of: i32, found: &mut Vec<i32>) {
    // One that is gone meanwhile has none.
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else {
        return;
    };
    for thread in threads.flatten() {
        if let Ok(text) = fs::read_to_string(thread.path().join("children")) {
            found.extend(
                text.split_ascii_whitespace()
                    .filter_map(|it| it.parse::<i32>().ok()),
            );
        }
    }
}

/// Everything below this process. Whatever loses its parent becomes a child of ours.
pub(super) fn descendants() -> BTreeSet<i32> {
    let mut all = BTreeSet::new();
    let mut left = Vec::new();
    children(std::process::id().cast_signed(), &mut left);
    while let Some(process) = left.pop() {
        if all.insert(process) {
            children(process, &mut left);
        }
    }
    all
}

/// Lets them end by themselves, all but one.
pub(super) fn terminate(but: Option<i32>) {
    for process in descendants().into_iter().filter(|it| Some(*it) != but) {
        let _gone = kill(Pid::from_raw(process), Signal::SIGTERM);
    }
}

/// Ends them all. First each is stopped, until none is found that was not: what is stopped starts nothing.
pub(super) fn end_all() {
    let mut stopped = BTreeSet::new();
    for _ in 0..PASSES_MAX {
        let fresh: Vec<i32> = (descendants().into_iter())
            .filter(|process| stopped.insert(*process))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            let _gone = kill(Pid::from_raw(process), Signal::SIGSTOP);
        }
    }
    for process in stopped {
        let _gone = kill(Pid::from_raw(process), Signal::SIGKILL);
    }
}
