//! What ran arrived: never early, never the same attempt twice, and nothing arrived that did not run.

use std::collections::BTreeSet;

use model::Delivery;

use super::slots::text;
use super::{Books, Findings, Kind};
use crate::chaos::load::Manner;
use crate::chaos::recording::{Arrival, Entry};

pub fn check(books: &Books<'_>, findings: &mut Findings) {
    let mut ids = BTreeSet::new();
    for entry in &books.recording.entries {
        if !ids.insert(&entry.id) {
            findings.add(Kind::DecidedTwice, format!("in history twice: {entry:?}"));
        }
        if entry.state == "succeeded" && books.arrivals(&entry.id).is_empty() {
            findings.add(Kind::Silent, format!("{entry:?}"));
        }
    }
    let (mut repeats, mut in_calm) = (0, 0);
    for (run, arrivals) in &books.arrivals {
        let Some(entry) = books.runs.get(run) else {
            let what = format!("{run} is not in history: {arrivals:?}");
            findings.add(Kind::Stranger, what);
            continue;
        };
        repeats += arrivals.len() - 1;
        let undisturbed = |millis: Option<i64>| millis.is_none_or(|it| !books.is_disturbed(it));
        let calm = undisturbed(Some(books.due(entry))) && undisturbed(entry.settled_at);
        if arrivals.len() > 1 && calm && is_sound(books, entry) {
            in_calm += 1;
        }
        once(books, entry, arrivals, findings);
        for arrival in arrivals {
            on_time(books, entry, arrival, findings);
        }
    }
    findings.figures.push(format!(
        "{} arrivals, {repeats} of them a later attempt ({in_calm} in calm of a target that does not fail)",
        books.recording.arrivals.len()
    ));
}

/// Whether its target never fails.
fn is_sound(books: &Books<'_>, entry: &Entry) -> bool {
    let job = books.jobs.get(entry.job.as_str());
    job.is_some_and(|job| job.manner != Manner::Flaky)
}

fn once(books: &Books<'_>, entry: &Entry, arrivals: &[&Arrival], findings: &mut Findings) {
    let mut attempts = BTreeSet::new();
    for arrival in arrivals {
        if !attempts.insert(arrival.attempt) {
            findings.add(
                Kind::Redelivered,
                format!("attempt {} of {entry:?}: {arrivals:?}", arrival.attempt),
            );
        }
        if arrival.attempt > entry.attempt {
            let what = format!("history knows of no such attempt: {arrival:?} of {entry:?}");
            findings.add(Kind::Stranger, what);
        }
    }
    let job = books.jobs.get(entry.job.as_str());
    let once_only = job.is_some_and(|job| job.delivery == Delivery::AtMostOnce);
    if once_only && arrivals.len() > 1 {
        let what = format!("may arrive once at most: {entry:?}: {arrivals:?}");
        findings.add(Kind::Redelivered, what);
    }
    if entry.state == "skipped" {
        let what = format!("was skipped and arrived: {entry:?}: {arrivals:?}");
        findings.add(Kind::Stranger, what);
    }
}

fn on_time(books: &Books<'_>, entry: &Entry, arrival: &Arrival, findings: &mut Findings) {
    if *arrival.job != *entry.job || arrival.slot != entry.slot {
        let what = format!("{arrival:?} is not what history says: {entry:?}");
        findings.add(Kind::Stranger, what);
    }
    let due = books.due(entry);
    if entry.attempt == 1 && entry.due_at != due {
        let what = format!("is due at {}: {entry:?}", text(due));
        findings.add(Kind::Stranger, what);
    }
    // History has the due time of the last attempt; those between were due later than the first.
    let due = if arrival.attempt == entry.attempt {
        due.max(entry.due_at)
    } else {
        due
    };
    let early = due * 1_000 - arrival.at_micros;
    if early > 0 {
        let what = format!("by {early} µs: {arrival:?} of {entry:?}");
        findings.add(Kind::Early, what);
    }
}
