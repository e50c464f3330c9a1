//! Every slot of every job is decided exactly once: by history, and by what the API lists.

use std::collections::BTreeMap;

use model::Timestamp;

use super::{Books, Findings, Kind};
use crate::chaos::load::LoadJob;
use crate::chaos::recording::{Entry, SlotAnswer};

pub fn check(books: &Books<'_>, findings: &mut Findings) {
    let (mut slots, mut runs) = (0, 0);
    for (id, job) in &books.jobs {
        let entries = books.entries.get(id).map_or(&[][..], Vec::as_slice);
        let expected = match job.link() {
            None => job.slots(),
            Some(span) => linked(job, entries, span.as_millis() as i64, findings),
        };
        slots += expected.len();
        runs += entries.iter().filter(|it| it.state != "skipped").count();
        in_history(job, &expected, entries, findings);
        if let Some(answers) = books.recording.answers.get(*id) {
            compare(job, &expected, answers, entries, findings);
        }
    }
    for (id, entries) in &books.entries {
        if !books.jobs.contains_key(id) {
            let what = format!("{id} was acknowledged to nobody and has {:?}", entries[0]);
            findings.add(Kind::Stranger, what);
        }
    }
    let jobs = books.jobs.len();
    findings
        .figures
        .push(format!("{slots} slots of {jobs} jobs, {runs} runs"));
}

/// Where each run sets the next slot, nobody can say before which there are; but one follows from the other, to the
/// end.
fn linked(job: &LoadJob, entries: &[&Entry], span: i64, findings: &mut Findings) -> Vec<i64> {
    let bounds = &job.schedule.bounds;
    let first = bounds.starts_at.map(Timestamp::as_millis);
    let last = bounds.ends_at.map(Timestamp::as_millis);
    let mut next = first;
    for entry in entries {
        if next != Some(entry.slot) {
            let due = next.map(text);
            let what = format!("the next after the last end is {due:?}: {entry:?}");
            findings.add(Kind::Stranger, what);
        }
        next = entry.settled_at.map(|ended| ended + span);
    }
    if next.is_some_and(|next| last.is_none_or(|last| next <= last)) {
        let what = format!("{} was due at {:?} and never again", job.id, next.map(text));
        findings.add(Kind::Lost, what);
    }
    entries.iter().map(|entry| entry.slot).collect()
}

fn in_history(job: &LoadJob, expected: &[i64], entries: &[&Entry], findings: &mut Findings) {
    let mut decided: BTreeMap<i64, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        let slots = match entry.stretch {
            None => vec![entry.slot],
            Some((first, last, count)) => {
                let slots = within(expected, first, last);
                if slots.len() as u64 != count {
                    let what = format!("{entry:?} stands for {} slots", slots.len());
                    findings.add(Kind::Stranger, what);
                }
                slots
            }
        };
        for slot in slots {
            decided.entry(slot).or_default().push(entry);
        }
    }
    for slot in expected {
        match decided.remove(slot).as_deref() {
            None => findings.add(Kind::Lost, format!("{} of {}", text(*slot), job.id)),
            Some([_]) => {}
            Some(several) => findings.add(
                Kind::DecidedTwice,
                format!("{} of {}: {several:?}", text(*slot), job.id),
            ),
        }
    }
    for (slot, entries) in decided {
        let what = format!("{} is no slot of {}: {entries:?}", text(slot), job.id);
        findings.add(Kind::Stranger, what);
    }
}

/// The API's own answer must account for the same slots in the same way.
fn compare(
    job: &LoadJob,
    expected: &[i64],
    answers: &[SlotAnswer],
    entries: &[&Entry],
    findings: &mut Findings,
) {
    let mut left = expected.to_vec();
    let mut odd = |what: String| {
        findings.add(Kind::AnsweredOtherwise, format!("{}: {what}", job.id));
    };
    for item in answers {
        let slots = within(expected, item.first, item.last);
        if slots.len() as u64 != item.count {
            odd(format!("{item:?} stands for {} slots", slots.len()));
        }
        for slot in slots {
            match left.binary_search(&slot) {
                Ok(at) => drop(left.remove(at)),
                Err(_) => odd(format!("{} is listed twice", text(slot))),
            }
        }
        let ran = item.run.as_ref();
        let known = match item.fate.as_str() {
            "ran" => entries
                .iter()
                .any(|it| Some(&it.id) == ran && it.slot == item.first),
            "skipped" | "missed" => entries.iter().any(|it| {
                let (first, last, _) = it.stretch.unwrap_or((it.slot, it.slot, 1));
                it.state == "skipped" && first <= item.last && item.first <= last
            }),
            _ => false,
        };
        if !known {
            odd(format!("history knows nothing of {item:?}"));
        }
    }
    if !left.is_empty() {
        let slots: Vec<String> = left.iter().take(5).map(|slot| text(*slot)).collect();
        odd(format!("{} slots are not listed: {slots:?}", left.len()));
    }
}

fn within(slots: &[i64], first: i64, last: i64) -> Vec<i64> {
    let is_within = |slot: &&i64| (first..=last).contains(*slot);
    slots.iter().filter(is_within).copied().collect()
}

pub fn text(millis: i64) -> String {
    Timestamp::from_millis(millis).to_string()
}
