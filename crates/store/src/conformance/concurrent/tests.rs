//! A checker that cannot fail proves nothing: histories that no store may have, and stores with a flaw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::shard::ShardSet;
use model::{BeatMark, Job, PresenceId, Run, RunId, Verdict};

use super::calls::{About, Answer, Call};
use super::checker::{Explained, explain, shortest};
use super::history::{Entry, Opening, show};
use super::invariants::Left;
use super::stage::Arena;
use super::{answers_in_some_order, try_for};
use crate::conformance::{DONE, TestClock, at, firing, job, settlement, slot};
use crate::mem::{Flaw, MemStore};
use crate::{BoxError, Epoch, Fired, Leases, LowWater};

fn arena(flaw: Flaw) -> Arena {
    let clock = TestClock::default();
    let store = MemStore::new(Arc::new(clock.clone())).with_flaw(flaw);
    Arena::new(vec![Arc::new(store)], clock, ())
}

#[test]
fn the_reference_answers_in_some_order() {
    answers_in_some_order(async || Ok::<_, BoxError>(arena(Flaw::None)));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_flaw_is_found() {
    for flaw in [
        Flaw::SkipCompareAndSwap,
        Flaw::SkipEpochCheck,
        Flaw::SkipClaimCheck,
    ] {
        let found = try_for(&arena(flaw), 1, Duration::from_secs(60)).await;
        assert!(found.is_err(), "{flaw:?}: {found:?}");
    }
}

/// One job, the presence that has its shard, and one that has nothing.
struct Story {
    job: Arc<Job>,
    first: Leases,
    second: Leases,
    entries: Vec<Entry>,
}

impl Story {
    fn new() -> Self {
        let job = Arc::new(job(1).unwrap());
        let presence = |number| PresenceId::new(at(0), [number; 10]);
        let leases = |number| Leases {
            presence: presence(number),
            epochs: BTreeMap::from([(job.shard(), Epoch(7))]),
            low_water: LowWater::HIGHEST,
        };
        Self {
            first: leases(1),
            second: leases(2),
            entries: Vec::new(),
            job,
        }
    }

    fn opening(&self) -> Opening {
        let shards: ShardSet = [self.job.shard()].into_iter().collect();
        Opening {
            now: at(4),
            uptime: BeatMark::default(),
            presences: vec![
                (self.first.presence, shards, true),
                (self.second.presence, ShardSet::default(), true),
            ],
            epochs: self.first.epochs.clone(),
            jobs: vec![self.job.clone()],
        }
    }

    /// The first slot's run, as the first presence holds it.
    fn run(&self) -> Run {
        Run {
            claim: Some(self.first.presence),
            ..Run::of_slot(&self.job, slot(60))
        }
    }

    fn then(&mut self, (start, end): (u64, u64), call: Call, answer: Option<Answer>) {
        self.entries.push(Entry {
            start,
            end,
            about: About::Job(self.job.id),
            call,
            answer,
        });
        self.entries.sort_by_key(|entry| entry.end);
    }

    fn fire(&mut self, when: (u64, u64), by: &Leases, answer: Fired) {
        let call = Call::Fire(by.clone(), vec![firing(&self.job, at(60))]);
        self.then(when, call, Some(Answer::Fired(answer)));
    }

    fn settle(&mut self, when: (u64, u64)) {
        let settled = settlement(&self.run(), Verdict::Succeed);
        let call = Call::Settle(self.first.presence, vec![settled]);
        self.then(when, call, Some(Answer::Settled(DONE)));
    }

    fn read(&mut self, when: (u64, u64), job: &Job) {
        let answer = Answer::Job(Some(Box::new(job.clone())));
        self.then(when, Call::ReadJob(job.id), Some(answer));
    }

    /// The job after its first slot was decided.
    fn moved(&self) -> Job {
        let decision = firing(&self.job, at(60)).decision;
        self.job
            .at_standing(self.job.standing_after(&decision, true))
    }

    async fn is_explained(&self) -> bool {
        let explained = explain(&self.opening(), self.job.id, &self.entries).await;
        matches!(explained.unwrap(), Explained::By(_))
    }

    fn broken(&self) -> Option<String> {
        self.left(&self.job, &[]).broken()
    }

    fn left<'a>(&'a self, job: &'a Job, slots: &'a [Run]) -> Left<'a> {
        Left {
            created: &self.job,
            entries: &self.entries,
            job: Some(job),
            live: &[],
            ended: &[],
            slots,
        }
    }
}

#[tokio::test]
async fn an_attempt_with_two_holders_is_found() {
    let mut story = Story::new();
    let (first, second) = (story.first.clone(), story.second.clone());
    let id = story.run().id;
    story.fire((0, 1), &first, Fired::Claimed(id));
    assert!(story.is_explained().await);
    assert_eq!(story.broken(), None);

    story.fire((2, 3), &second, Fired::Claimed(id));
    assert!(!story.is_explained().await);
    assert!(story.broken().unwrap().contains("was given to"));
}

#[tokio::test]
async fn an_attempt_that_is_settled_twice_is_found() {
    let mut story = Story::new();
    let first = story.first.clone();
    let id = story.run().id;
    story.fire((0, 1), &first, Fired::Claimed(id));
    story.settle((2, 3));
    assert!(story.is_explained().await);
    assert_eq!(story.broken(), None);

    story.settle((2, 5));
    assert!(!story.is_explained().await);
    assert!(story.broken().unwrap().contains("settled twice"));
}

#[tokio::test]
async fn a_slot_that_is_lost_is_found() {
    let mut story = Story::new();
    let job = Job {
        slot_last: Some(at(120)),
        ..Job::clone(&story.job)
    };
    let [one, two] = [60, 120].map(|secs| Run::of_slot(&job, slot(secs)));
    let whole = story.left(&job, &[one.clone(), two.clone()]).broken();
    assert_eq!(whole, None);
    let lost = story.left(&job, std::slice::from_ref(&two)).broken();
    assert!(lost.unwrap().contains("neither a run nor a skip record"));
    let twice = story.left(&job, &[one, two.clone(), two]).broken();
    assert!(twice.unwrap().contains("decided twice"));

    // Fired, answered, and not there.
    let first = story.first.clone();
    story.fire((0, 1), &first, Fired::Claimed(story.run().id));
    let nothing = Some(Answer::Runs(Vec::new()));
    story.then((2, 3), Call::ReadSlots(story.job.id), nothing);
    assert!(!story.is_explained().await);
}

#[tokio::test]
async fn a_run_that_waits_for_nobody_is_found() {
    let story = Story::new();
    let waits = Run {
        wait: Some(model::Wait::TURN),
        claim: None,
        ..story.run()
    };
    let moves = Run {
        id: RunId::for_slot(story.job.id, slot(120)),
        wait: None,
        ..waits.clone()
    };
    let with = |live: &[Run], ended: &[Run]| {
        let left = story.left(&story.job, &[]);
        Left {
            live,
            ended,
            ..left
        }
        .broken()
    };
    assert_eq!(with(&[waits.clone(), moves.clone()], &[]), None);
    assert!(with(&[waits], &[]).unwrap().contains("waits for nobody"));
    let ended = Run {
        state: model::RunState::Cancelled,
        ..moves.clone()
    };
    assert!(with(&[moves], &[ended]).unwrap().contains("both live"));
}

#[tokio::test]
async fn calls_that_overlap_may_have_come_in_any_order() {
    let mut story = Story::new();
    let (first, before, after) = (story.first.clone(), story.job.clone(), story.moved());
    story.read((0, 9), &after);
    story.read((1, 8), &before);
    story.fire((2, 7), &first, Fired::Claimed(story.run().id));
    assert!(story.is_explained().await);
}

#[tokio::test]
async fn an_answer_that_comes_too_late_to_be_true_is_found() {
    let mut story = Story::new();
    let (first, before) = (story.first.clone(), story.job.clone());
    story.fire((0, 1), &first, Fired::Claimed(story.run().id));
    story.read((2, 3), &before);
    story.fire((4, 5), &first, Fired::Claimed(story.run().id));
    assert!(!story.is_explained().await);

    let (opening, job) = (story.opening(), story.job.id);
    let (shortest, nearest) = shortest(&opening, job, &story.entries).await.unwrap();
    assert_eq!(shortest.len(), 2, "{}", show(&shortest));
    let after = Answer::Job(Some(Box::new(story.moved())));
    assert_eq!(nearest, [(1, after)]);
}

#[tokio::test]
async fn a_call_without_an_answer_may_have_happened_or_not() {
    for happened in [false, true] {
        let mut story = Story::new();
        let call = Call::Fire(story.first.clone(), vec![firing(&story.job, at(60))]);
        story.then((0, u64::MAX), call, None);
        let job = if happened {
            story.moved()
        } else {
            Job::clone(&story.job)
        };
        story.read((1, 2), &job);
        assert!(story.is_explained().await, "{happened}");
    }
}
