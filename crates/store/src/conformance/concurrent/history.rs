//! What happened: every call with the moments it began and ended at, by one counter for all; and what of it is about
//! one job.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::shard::ShardSet;
use model::{BeatMark, Job, JobId, PresenceId, Shard, Timestamp};

use super::calls::{About, Answer, Call};
use crate::{Epoch, Store};

/// One item of a call.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub start: u64,
    pub end: u64,
    pub about: About,
    pub call: Call,
    /// None: not known, and neither is whether the call was made.
    pub answer: Option<Answer>,
}

/// How things stood before anything was recorded.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub now: Timestamp,
    /// As a beat of this moment is marked.
    pub uptime: BeatMark,
    /// In the order they joined, with the shards each wanted; and whether they were heard since.
    pub presences: Vec<(PresenceId, ShardSet, bool)>,
    /// What the first lease of each shard was numbered.
    pub epochs: BTreeMap<Shard, Epoch>,
    pub jobs: Vec<Arc<Job>>,
}

/// Writes down what is called and answered, by whomever.
#[derive(Default)]
pub(super) struct Recorder {
    moments: AtomicU64,
    entries: Mutex<Vec<Entry>>,
}

impl Recorder {
    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    /// Makes a call, and writes down each of its items.
    pub(super) async fn make(&self, store: &dyn Store, call: &Call) -> Vec<(Call, Answer)> {
        let start = self.moment();
        let items = call.make(store).await;
        let end = self.moment();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = Vec::new();
        for (about, call, answer) in items {
            answers.push((call.clone(), answer.clone()));
            entries.push(Entry {
                start,
                end,
                about,
                call,
                answer: Some(answer).filter(|it| *it != Answer::Unknown),
            });
        }
        answers
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        let entries = self.entries.into_inner();
        entries.unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is about one job, in the order of the answers.
pub(super) fn of_job(entries: &[Entry], job: JobId) -> Vec<Entry> {
    let about = |entry: &&Entry| entry.about == About::Job(job) || entry.about == About::All;
    let mut ours: Vec<Entry> = entries.iter().filter(about).cloned().collect();
    ours.sort_by_key(|entry| entry.end);
    ours
}

/// What was known at a moment: of calls under way only that they may have happened.
pub(super) fn known_at(entries: &[Entry], moment: u64) -> Vec<Entry> {
    let begun = entries.iter().filter(|entry| entry.start < moment);
    let known = begun.map(|entry| {
        let answered = entry.end <= moment;
        Entry {
            end: if answered { entry.end } else { u64::MAX },
            answer: entry.answer.clone().filter(|_| answered),
            ..entry.clone()
        }
    });
    known.collect()
}

/// For people: a line for each call, in the order they began.
pub(super) fn show(entries: &[Entry]) -> String {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.start);
    let mut text = String::new();
    for entry in sorted {
        let Entry {
            start,
            end,
            call,
            answer,
            ..
        } = entry;
        let said = answer.as_ref().map_or("?".to_owned(), short);
        // Writing to a text cannot fail.
        let _written = writeln!(text, "[{start}..{end}] {}\n    -> {said}", short(call));
    }
    text
}

/// For people: answers in full, beside those that the reference would have given.
pub(super) fn show_nearest(entries: &[Entry], nearest: &[(usize, Answer)]) -> String {
    let mut text = String::new();
    for (index, answer) in nearest {
        let Some(entry) = entries.get(*index) else {
            continue;
        };
        let (start, recorded) = (entry.start, &entry.answer);
        // Writing to a text cannot fail.
        let _written = writeln!(
            text,
            "[{start}..] was answered {recorded:?}\n    not {answer:?}"
        );
    }
    text
}

/// Definitions are long, and mostly the same.
fn short(it: &impl std::fmt::Debug) -> String {
    let text = format!("{it:?}");
    let mut short = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(", def: Definition {") {
        let (before, def) = rest.split_at(at);
        short.push_str(before);
        let mut depth = 0_i32;
        let end = def.char_indices().skip(2).find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            *c == '}' && depth == 0
        });
        rest = end.map_or("", |(index, _)| &def[index + 1..]);
    }
    short.push_str(rest);
    short
}
