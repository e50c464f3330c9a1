//! How long a job's latest runs took, and how late they started: one step for each, oldest first.

use model::{Job, Run, RunKind, Timestamp};

use super::charts::{self, Chart, Tick, millis};
use super::format::Face;
use super::runs::due_first;

fn between(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<f64> {
    let (from, to) = from.zip(to)?;
    // A run that took less than a millisecond is shown as one.
    Some((to.as_millis() - from.as_millis()).max(1) as f64)
}

fn most(values: &[Option<f64>]) -> String {
    let most = values.iter().flatten().copied().reduce(f64::max);
    most.map_or_else(|| "unknown".to_owned(), millis)
}

/// Of runs, newest first. None where fewer than two have started.
pub(super) fn chart(face: &Face<'_>, job: &Job, runs: &[Run]) -> Option<Chart> {
    let started = runs.iter().rev().filter(|run| run.dispatched_at.is_some());
    let started: Vec<&Run> = started.collect();
    let (first, last) = (started.first()?, started.last()?);
    if started.len() < 2 {
        return None;
    }
    let took: Vec<_> = started
        .iter()
        .map(|run| between(run.dispatched_at, run.settled_at))
        .collect();
    // A run that somebody wanted is never late.
    let late: Vec<_> = started
        .iter()
        .map(|run| {
            let is_slot = run.kind == RunKind::Slot;
            let due = due_first(run, Some(job));
            between(Some(due), run.dispatched_at).filter(|_| is_slot)
        })
        .collect();
    let label = |run: &Run| face.clock(due_first(run, Some(job)));
    let middle = started.get(started.len() / 2)?;
    let tick = |at: &str, run: &Run| Tick {
        at: at.to_owned(),
        label: label(run),
        is_minor: false,
    };
    let chart = Chart {
        title: "Duration and lateness",
        unit: "of the latest runs, by the moment they were due",
        says: format!(
            "The latest {} runs, from {} {} to {} {}: the longest took {}, the latest started {} after it was due.",
            started.len(),
            face.day(due_first(first, Some(job))),
            label(first),
            face.day(due_first(last, Some(job))),
            label(last),
            most(&took),
            most(&late),
        ),
        legend: Vec::new(),
        across: vec![tick("8%", first), tick("50%", middle), tick("92%", last)],
        down: Vec::new(),
        width: 1,
        shapes: String::new(),
        is_empty: true,
    };
    let series = [("p99", "took", took), ("p50", "late", late)];
    Some(charts::decades(chart, &series))
}
