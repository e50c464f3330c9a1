//! What did not run, or did not end well: its job's policy must explain it.

use std::collections::BTreeMap;

use model::{CatchUpPolicy, Delivery, Overlap, limits};

use super::{Books, Findings, Kind};
use crate::chaos::load::{LoadJob, Manner};
use crate::chaos::recording::Entry;

pub fn check(books: &Books<'_>, findings: &mut Findings) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (id, entries) in &books.entries {
        let Some(job) = books.jobs.get(id) else {
            continue;
        };
        for entry in entries {
            let reason = entry.reason.as_deref().unwrap_or("no reason");
            if entry.state != "succeeded" {
                let many = entry.stretch.map_or(1, |(_, _, count)| count as usize);
                *counts
                    .entry(format!("{} {reason}", entry.state))
                    .or_default() += many;
            }
            let why_not = match entry.state.as_str() {
                "succeeded" => None,
                "skipped" => skipped(books, job, entries, entry),
                "dead" => dead(books, job, entry),
                "ready" | "running" | "retrying" => {
                    findings.add(Kind::Unended, format!("{entry:?}"));
                    None
                }
                "cancelled" => cancelled(job, entry),
                _ => Some("there is no such state"),
            };
            if let Some(why) = why_not {
                findings.add(
                    Kind::Unexplained,
                    format!("{why}: {entry:?} of {}", of(job)),
                );
            }
        }
        in_calm(books, job, entries, &mut counts);
    }
    let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
    let counts: Vec<String> = counts.collect();
    findings.figures.push(counts.join(", "));
}

/// Quick jobs that met themselves although nothing happened: explained, and still odd.
fn in_calm(
    books: &Books<'_>,
    job: &LoadJob,
    entries: &[&Entry],
    counts: &mut BTreeMap<String, usize>,
) {
    let odd = entries.iter().filter(|entry| {
        entry.state == "skipped" && job.manner == Manner::Quick && books.is_calm(books.due(entry))
    });
    let odd = odd.count();
    if odd > 0 {
        *counts
            .entry("of these skipped in calm".to_owned())
            .or_default() += odd;
    }
}

fn of(job: &LoadJob) -> String {
    format!(
        "{} ({:?}, overlap {}, catch-up {}, {})",
        job.id,
        job.manner,
        job.overlap.as_str(),
        job.catch_up.as_str(),
        job.delivery.as_str()
    )
}

fn skipped(
    books: &Books<'_>,
    job: &LoadJob,
    entries: &[&Entry],
    entry: &Entry,
) -> Option<&'static str> {
    let Some(decided) = entry.settled_at else {
        return Some("nobody knows when");
    };
    match entry.reason.as_deref() {
        Some("overlap") => overlapped(books, job, entries, entry),
        Some("overload") => {
            let explained = is_overload(books, entries, entry, decided);
            (!explained).then_some("too few waited before it")
        }
        Some("missed") => {
            let last = entry.stretch.map_or(entry.slot, |(_, last, _)| last);
            let young = decided - (last + job.offset) <= limits::LATE_MAX.as_millis() as i64;
            match job.catch_up {
                CatchUpPolicy::All => Some("it is to catch up with all"),
                CatchUpPolicy::None | CatchUpPolicy::Latest => {
                    young.then_some("it was late, not missed")
                }
            }
        }
        _ => Some("no policy skips for this"),
    }
}

/// A delay that is the system's own is no overlap: a run of an earlier slot was under way when this one was due. One that
/// queues is skipped only if another waits already.
fn overlapped(
    books: &Books<'_>,
    job: &LoadJob,
    entries: &[&Entry],
    entry: &Entry,
) -> Option<&'static str> {
    let needed = match job.overlap {
        Overlap::Skip => 1,
        Overlap::QueueOne => 2,
        Overlap::Allow | Overlap::QueueAll { .. } | Overlap::CancelRunning => {
            return Some("its runs may overlap");
        }
    };
    let due = books.due(entry);
    let before = entries
        .iter()
        .filter(|run| run.state != "skipped" && run.slot < entry.slot);
    // Moments are whole milliseconds: one that ended in that of the due time may have been decided to be in the way before.
    let alive: Vec<&Entry> = before
        .copied()
        .filter(|run| run.settled_at.is_none_or(|ended| ended >= due))
        .collect();
    let counts = |run: &&Entry| {
        // What a node that is gone had dispatched may be known to the target alone.
        let arrived = books.arrivals(&run.id).first();
        let arrived = arrived.map(|arrival| arrival.at_micros / 1_000);
        run.dispatched_at
            .into_iter()
            .chain(arrived)
            .any(|at| at < due)
    };
    if !alive.iter().any(counts) {
        Some("no run was under way when it was due")
    } else if alive.len() < needed {
        Some("no run waited before it")
    } else {
        None
    }
}

/// Whether a run waited when this slot was decided that was due so long before it.
fn is_overload(books: &Books<'_>, entries: &[&Entry], entry: &Entry, decided: i64) -> bool {
    let late_max = limits::LATE_MAX.as_millis() as i64;
    entries.iter().any(|run| {
        let later = |moment: Option<i64>| moment.is_none_or(|moment| moment >= decided);
        let waited = run.state != "skipped" && later(run.dispatched_at) && later(run.settled_at);
        waited && books.due(entry) - books.due(run) > late_max
    })
}

fn cancelled(job: &LoadJob, entry: &Entry) -> Option<&'static str> {
    let replaced = entry.reason.as_deref() == Some("replaced");
    let explained = replaced && job.overlap == Overlap::CancelRunning;
    (!explained).then_some("nobody requested it")
}

fn dead(books: &Books<'_>, job: &LoadJob, entry: &Entry) -> Option<&'static str> {
    match entry.reason.as_deref() {
        Some("attempts_spent") if job.manner == Manner::Flaky => None,
        Some("lost") => {
            let ended = entry.settled_at.unwrap_or_default();
            if job.delivery != Delivery::AtMostOnce {
                Some("it may run again")
            } else if !books.is_disturbed(books.due(entry)) && !books.is_disturbed(ended) {
                Some("nobody was gone")
            } else {
                None
            }
        }
        _ => Some("its target refuses nothing"),
    }
}
