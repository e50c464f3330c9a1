//! How long faults were felt, and the bars on it.

use std::collections::BTreeMap;

use super::slots::text;
use super::{Books, Findings, Kind};
use crate::chaos::faults::{Fault, Strike};
use crate::chaos::load::{LoadJob, Manner};
use crate::chaos::recording::{Arrival, Entry};

/// After a kill, slots of its shards fire again within this.
const TAKEOVER_MAX: i64 = 5_000;
/// What a slot due after that may still be late, on a busy machine.
const BUSY: i64 = 500;
/// How long after a kill slots are looked at; then the node comes back.
const TAKEOVER_WATCHED: i64 = 6_500;
/// After a stop in good order, no slot is later than this.
const HAND_OVER_MAX: i64 = 250;
/// So long after it.
const HAND_OVER_WATCHED: i64 = 3_000;
/// A one-off that was made so shortly before it was due is checked apart.
const KNOWN_BEFORE: i64 = 6_000;

/// The first arrival of a run whose target is quick.
#[derive(Clone, Copy)]
struct First<'a> {
    job: &'a LoadJob,
    entry: &'a Entry,
    arrival: &'a Arrival,
    due: i64,
}

impl First<'_> {
    fn late_micros(&self) -> i64 {
        self.arrival.at_micros - self.due * 1_000
    }

    fn late(&self) -> i64 {
        self.late_micros() / 1_000
    }

    /// Made so late that nobody else may have known of it.
    fn is_hasty(&self) -> bool {
        self.job.known_at + KNOWN_BEFORE > self.due
    }

    fn describe(&self) -> String {
        format!(
            "{} ms late, by {} as attempt {}: {:?}",
            self.late(),
            self.arrival.node,
            self.arrival.attempt,
            self.entry
        )
    }
}

pub fn check(books: &Books<'_>, findings: &mut Findings) {
    let firsts = firsts(books);
    let usual = firsts
        .iter()
        .filter(|it| !it.is_hasty() && books.is_calm(it.due));
    let line = spread_of("in calm, late by", usual);
    findings.figures.push(line);
    let hasty = firsts
        .iter()
        .filter(|it| it.is_hasty() && books.is_calm(it.due));
    let line = spread_of("made shortly before, late by", hasty);
    findings.figures.push(line);
    for strike in &books.recording.strikes {
        let line = match strike.fault {
            Fault::Kill | Fault::Pause | Fault::Hold | Fault::Refuse => {
                taken_over(books, strike, &firsts, findings)
            }
            Fault::Stop => handed_over(strike, &firsts, findings),
            Fault::Deafen
            | Fault::Delay
            | Fault::Lock
            | Fault::RestartFast
            | Fault::RestartImmediate
            | Fault::FailOver
            | Fault::Outage
            | Fault::Freeze
            | Fault::Blackout => latest(strike.begun, strike.ended + 3_000, &firsts),
        };
        let back = match strike.fault {
            Fault::Kill | Fault::Stop | Fault::Pause | Fault::Hold | Fault::Refuse => {
                let joined = latest(strike.ended, strike.ended + 3_000, &firsts);
                format!("; back again: {joined}")
            }
            Fault::Deafen
            | Fault::Delay
            | Fault::Lock
            | Fault::RestartFast
            | Fault::RestartImmediate
            | Fault::FailOver
            | Fault::Outage
            | Fault::Freeze
            | Fault::Blackout => String::new(),
        };
        let took = (strike.ended - strike.begun) as f64 / 1_000.0;
        let of = strike
            .node
            .map_or(String::new(), |node| format!(" of {node}"));
        findings.figures.push(format!(
            "{} {}{of} ({took:.1} s): {line}{back}",
            text(strike.begun),
            strike.fault
        ));
    }
}

/// In the order of their due times.
fn firsts<'a>(books: &Books<'a>) -> Vec<First<'a>> {
    let mut firsts = Vec::new();
    for (run, arrivals) in &books.arrivals {
        let entry = books.runs.get(run);
        let job = entry.and_then(|entry| books.jobs.get(entry.job.as_str()));
        if let (Some(entry), Some(job), Some(arrival)) = (entry, job, arrivals.first())
            && job.manner == Manner::Quick
        {
            firsts.push(First {
                job,
                entry,
                arrival,
                due: books.due(entry),
            });
        }
    }
    firsts.sort_by_key(|first| first.due);
    firsts
}

fn spread_of<'a, 'b: 'a>(what: &str, firsts: impl Iterator<Item = &'a First<'b>>) -> String {
    let mut late: Vec<i64> = firsts.map(First::late_micros).collect();
    late.sort_unstable();
    let part = |share: f64| {
        let at = (late.len() as f64 * share) as usize;
        late.get(at.min(late.len().saturating_sub(1)))
            .map_or(0.0, |micros| *micros as f64 / 1_000.0)
    };
    format!(
        "{what} p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms of {}",
        part(0.5),
        part(0.99),
        part(1.0),
        late.len()
    )
}

fn due_within<'a>(
    firsts: &'a [First<'a>],
    from: i64,
    to: i64,
) -> impl Iterator<Item = &'a First<'a>> {
    let is_within = move |it: &&First<'_>| (from..to).contains(&it.due);
    firsts.iter().filter(is_within).filter(|it| !it.is_hasty())
}

fn latest(from: i64, to: i64, firsts: &[First<'_>]) -> String {
    let (mut count, mut late_count, mut most) = (0, 0, 0);
    for first in due_within(firsts, from, to) {
        count += 1;
        late_count += usize::from(first.late() > HAND_OVER_MAX);
        most = most.max(first.late());
    }
    format!("{late_count} of {count} slots over {HAND_OVER_MAX} ms late, at most {most} ms")
}

/// Jobs whose last slot before a moment was fired by a node.
fn of_node<'a>(books: &Books<'a>, node: &str, before: i64) -> BTreeMap<&'a str, &'a LoadJob> {
    let mut last: BTreeMap<&str, &Arrival> = BTreeMap::new();
    for arrival in &books.recording.arrivals {
        if arrival.at_micros < before * 1_000 {
            last.insert(&arrival.job, arrival);
        }
    }
    let of_node = last.iter().filter(|(_, arrival)| *arrival.node == *node);
    of_node
        .filter_map(|(id, _)| books.jobs.get_key_value(id))
        .map(|(id, job)| (*id, *job))
        .collect()
}

/// Another node takes its shards. After a kill, within the bound.
fn taken_over(
    books: &Books<'_>,
    strike: &Strike,
    firsts: &[First<'_>],
    findings: &mut Findings,
) -> String {
    let begun = strike.begun;
    let moved = of_node(books, strike.node.unwrap_or_default(), begun);
    let (mut felt, mut again) = (0, 0);
    for first in due_within(firsts, begun, begun + TAKEOVER_WATCHED) {
        let after = first.arrival.at_micros / 1_000 - begun;
        if !moved.contains_key(first.entry.job.as_str()) || first.late() <= BUSY {
            continue;
        }
        felt += 1;
        again = again.max(after);
        if after > TAKEOVER_MAX && strike.fault == Fault::Kill {
            let what = format!("{after} ms after the kill: {}", first.describe());
            findings.add(Kind::LateTakeover, what);
        }
    }
    format!(
        "{} jobs moved, {felt} of their slots over {BUSY} ms late, the last of these after {again} ms",
        moved.len()
    )
}

fn handed_over(strike: &Strike, firsts: &[First<'_>], findings: &mut Findings) -> String {
    let until = strike.begun + HAND_OVER_WATCHED;
    for first in due_within(firsts, strike.begun, until) {
        if first.late() > HAND_OVER_MAX {
            findings.add(Kind::LateHandOver, first.describe());
        }
    }
    latest(strike.begun, until, firsts)
}
