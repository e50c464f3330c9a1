//! What did not run, or did not end well: its job's policy must explain it.

use std::collections::BTreeMap;

use model::{CatchUpPolicy, Delivery, Overlap, limits};

use super::{Books, Findings, Kind};
use crate::chaos::load::{LoadJob, Manner};
use crate::chaos::recording::Entry;

/// How much later than it was judged an end may be written.
const WRITTEN_WITHIN: i64 = 1_500;
/// The same around a fault: a database that is away takes nothing.
const WRITTEN_WITHIN_DISTURBED: i64 = 20_000;

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
        Some("overlap") => {
            let alive = alive_at(books, entries, entry, decided);
            let needed = match job.overlap {
                Overlap::Skip => 1,
                Overlap::QueueOne => 2,
                Overlap::Allow | Overlap::QueueAll { .. } | Overlap::CancelRunning => {
                    return Some("its runs may overlap");
                }
            };
            (alive < needed).then_some("no run before it was alive")
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

/// Runs of earlier slots that may have been alive when a slot was decided.
fn alive_at(books: &Books<'_>, entries: &[&Entry], entry: &Entry, decided: i64) -> usize {
    let alive = entries.iter().filter(|run| {
        let Some(settled) = run.settled_at else {
            return run.slot < entry.slot;
        };
        let disturbed = books.is_disturbed(settled) || books.is_disturbed(decided);
        let within = match disturbed {
            true => WRITTEN_WITHIN_DISTURBED,
            false => WRITTEN_WITHIN,
        };
        run.state != "skipped" && run.slot < entry.slot && settled + within >= decided
    });
    alive.count()
}

fn cancelled(job: &LoadJob, entry: &Entry) -> Option<&'static str> {
    let replaced = entry.reason.as_deref() == Some("replaced");
    let explained = replaced && job.overlap == Overlap::CancelRunning;
    (!explained).then_some("nobody asked for it")
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
