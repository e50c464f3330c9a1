use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::id::{JobId, TenantId};
use crate::job::Definition;
use crate::run::{Reason, Skip, Stretch};
use crate::schedule::{Every, Period, Zone};
use crate::target::Target;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

/// Due every minute; decided up to second 600.
fn job(overlap: Overlap) -> Job {
    let period = Period::Elapsed(Duration::from_secs(60));
    let every = Every::new(period, at(0), Zone::utc()).unwrap();
    let mut def = Definition::new(every.into(), Target::http("http://localhost/").unwrap());
    def.overlap = overlap;
    let id = JobId::new(at(0), [1; 10]);
    Job {
        slot_last: Some(at(600)),
        next_slot: Some(Slot(at(660))),
        ..Job::new(id, TenantId::DEFAULT, None, def, at(1))
    }
}

fn wanted(job: &Job, secs: i64) -> QueueRun {
    let slot = Slot(at(secs));
    QueueRun {
        run: Run {
            slot: Some(slot),
            ..Run::of_request(job, RunId::for_slot(job.id, slot), RunKind::Slot, at(700))
        },
        replay: ReplayId::new(at(650), [2; 10]),
        since: at(650),
    }
}

fn skipped(job: &Job, first: i64, last: i64) -> Run {
    let skip = Skip {
        slots: Stretch {
            first: Slot(at(first)),
            last: Slot(at(last)),
            count: ((last - first) / 60 + 1) as u64,
        },
        reason: Reason::Paused,
        note: Some("why".to_owned()),
        actor: Arc::from("someone"),
    };
    Run::skipped(job, &skip, at(601))
}

fn view(job: &Job, slots: impl IntoIterator<Item = Run>) -> View {
    let mut view = View::new(job.clone(), []);
    view.history.slots = slots.into_iter().map(|run| (run.id, run)).collect();
    view
}

/// The slots that have a run or a record, once each.
fn accounted(view: &View) -> Vec<i64> {
    let left = view.history.slots.values();
    let all = left.chain(view.live.values()).filter_map(Run::slots);
    let slots = all.flat_map(|slots| {
        let first = slots.first.0.as_millis() / 60_000;
        first..=slots.last.0.as_millis() / 60_000
    });
    let mut slots: Vec<i64> = slots.collect();
    slots.sort_unstable();
    slots
}

#[test]
fn no_slot_disappears_and_none_is_recorded_twice_whatever_is_run_of_a_stretch() {
    let job = job(Overlap::Allow);
    for mask in 0..64_u32 {
        let mut view = view(&job, [skipped(&job, 60, 360)]);
        let before = accounted(&view);
        for n in (0..6).filter(|n| mask >> n & 1 == 1) {
            let queued = view.queue(&wanted(&job, 60 + 60 * n));
            assert!(matches!(queued, Queued::Ready(_)), "{mask}: {queued:?}");
            assert_eq!(accounted(&view), before, "{mask}");
        }
        // What is written leaves the same: records that stay, and those that are deleted.
        let mut rows: std::collections::BTreeMap<RunId, Run> = Default::default();
        rows.insert(
            RunId::for_slot(job.id, Slot(at(60))),
            skipped(&job, 60, 360),
        );
        for id in view.effects.skips.keys() {
            rows.remove(id);
        }
        rows.extend(view.effects.history.clone());
        assert_eq!(rows, view.history.slots, "{mask}");
    }
}

#[test]
fn runs_of_a_job_that_lets_none_overlap_wait_and_none_is_skipped_for_another() {
    for overlap in [Overlap::Skip, Overlap::QueueOne, Overlap::CancelRunning] {
        let job = job(overlap);
        let mut view = view(&job, []);
        assert!(matches!(view.queue(&wanted(&job, 60)), Queued::Ready(_)));
        assert!(matches!(view.queue(&wanted(&job, 120)), Queued::Waiting(_)));
        assert_eq!(view.living().moving, 1);
        assert_eq!(view.effects.insert.len(), 2);
        assert_eq!(view.job.as_ref().map(|job| job.manual_runs), Some(2));
    }
}

#[test]
fn a_slot_that_fire_may_still_decide_is_left_to_it() {
    let job = job(Overlap::Allow);
    let mut view = view(&job, []);
    assert_eq!(view.queue(&wanted(&job, 660)), Queued::Undecided);
    assert_eq!(view.queue(&wanted(&job, 6_600)), Queued::Undecided);
    assert!(view.effects.insert.is_empty());
    // A pause that goes on has decided nothing of what passed since.
    let paused = Job {
        state: JobState::Paused,
        next_slot: None,
        ..job.clone()
    };
    let mut view = View::new(paused, []);
    assert_eq!(view.queue(&wanted(&job, 660)), Queued::Undecided);
}

#[test]
fn what_ended_since_it_was_wanted_is_not_run_again() {
    let job = job(Overlap::Allow);
    let ended = |secs| Run {
        state: RunState::Succeeded,
        settled_at: Some(at(secs)),
        ..Run::of_slot(&job, Slot(at(60)))
    };
    let mut before = view(&job, [ended(649)]);
    assert!(matches!(before.queue(&wanted(&job, 60)), Queued::Ready(_)));
    assert_eq!(before.effects.insert[0].kind, RunKind::Replay);
    let mut since = view(&job, [ended(650)]);
    assert_eq!(since.queue(&wanted(&job, 60)), Queued::Repeated);
}
