use std::time::Duration;

use super::super::{Fired, Firing, Settled, Settlement};
use super::*;
use crate::attempt::{Attempt, Report};
use crate::failures::FailuresMax;
use crate::id::{JobId, PresenceId, RunId, TenantId};
use crate::job::{Definition, Version};
use crate::policy::Overlap;
use crate::retry::Verdict;
use crate::run::{Mark, Reason};
use crate::schedule::{Every, Period, Schedule, Zone};
use crate::target::Target;

const ME: PresenceId = PresenceId(uuid::Uuid::from_u128(1));
const BURY: Verdict = Verdict::Bury(Reason::AttemptsSpent);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + secs * 1_000)
}

/// Due every minute; overlaps, and is paused after so many failures.
fn view(max: Option<u32>) -> View {
    let period = Period::Elapsed(Duration::from_secs(60));
    let every = Every::new(period, at(0), Zone::utc()).unwrap();
    let target = Target::http("http://localhost/").unwrap();
    let mut def = Definition::new(Schedule::from(every), target);
    def.overlap = Overlap::Allow;
    def.pause_after_failures = max.and_then(FailuresMax::new);
    let id = JobId::new(at(0), [1; 10]);
    View::new(Job::new(id, TenantId::DEFAULT, None, def, at(0)), [])
}

fn fire(view: &mut View) -> RunId {
    let job = Arc::new(view.job.clone().unwrap());
    let slot = job.next_slot.unwrap();
    let firing = Firing {
        decision: job.decide(slot, job.due_at(slot), &Arc::from("node")),
        job,
        claim: true,
        knows: Vec::new(),
    };
    let fired = view.fire(&firing, ME, true);
    let Fired::Claimed(run) = fired else {
        panic!("{fired:?}")
    };
    run
}

fn settle(view: &mut View, id: RunId, verdict: Verdict) -> Option<Box<PausedJob>> {
    let ended = view.live[&id].due_at.plus(Duration::from_secs(1));
    settle_at(view, id, verdict, ended)
}

fn settle_at(
    view: &mut View,
    id: RunId,
    verdict: Verdict,
    ended: Timestamp,
) -> Option<Box<PausedJob>> {
    let run = view.live[&id].clone();
    let report = Report::failed("503 Service Unavailable");
    let settlement = Settlement {
        attempt: Some(Attempt::new(run.attempt, Some(run.due_at), ended, report)),
        run,
        verdict,
    };
    let settled = view.settle(&settlement, ME, |_| false, ended);
    let Settled::Done { paused, .. } = settled else {
        panic!("{settled:?}")
    };
    paused
}

fn end(view: &mut View, verdict: Verdict) -> Option<Box<PausedJob>> {
    let run = fire(view);
    settle(view, run, verdict)
}

#[test]
fn the_last_failure_that_is_let_pass_pauses_the_job_and_says_why() {
    let mut view = view(Some(3));
    assert_eq!(end(&mut view, BURY), None);
    assert_eq!(end(&mut view, BURY), None);
    let before = view.job.clone().unwrap();
    let paused = end(&mut view, BURY).unwrap();
    let why = "paused after 3 failed runs in a row, the last: 503 Service Unavailable";
    assert_eq!(paused.note, why);
    let job = view.job.clone().unwrap();
    assert_eq!((job.state, job.next_slot), (JobState::Paused, None));
    assert_eq!(job.note.as_deref(), Some(why));
    assert_eq!(job.paused_by.as_deref(), Some("system"));
    assert_eq!(job.version, Version(2));
    assert_eq!(view.effects.job.as_ref(), Some(&job));
    let was = view.effects.paused.as_deref().unwrap();
    assert_eq!((was.state, was.version), (JobState::Active, before.version));
}

#[test]
fn a_success_begins_the_count_again_and_other_ends_change_nothing() {
    let mut view = view(Some(2));
    assert_eq!(end(&mut view, BURY), None);
    assert_eq!(end(&mut view, Verdict::Succeed), None);
    assert_eq!(view.job.as_ref().unwrap().failures, Some(0));
    assert_eq!(end(&mut view, BURY), None);
    assert_eq!(end(&mut view, Verdict::Cancel(Reason::Requested)), None);
    assert_eq!(view.job.as_ref().unwrap().failures, Some(1));
    assert!(end(&mut view, BURY).is_some());
}

#[test]
fn of_runs_that_end_at_once_one_pauses() {
    let mut view = view(Some(1));
    let runs = [fire(&mut view), fire(&mut view), fire(&mut view)];
    let paused = runs.map(|run| settle(&mut view, run, BURY).is_some());
    assert_eq!(paused, [true, false, false]);
    assert_eq!(view.job.unwrap().version, Version(2));
}

#[test]
fn runs_of_slots_ahead_are_taken_back_with_the_pause() {
    let mut view = view(Some(1));
    let (first, ahead) = (fire(&mut view), fire(&mut view));
    let shortly_before = view.live[&ahead].due_at.minus(Duration::from_millis(10));
    let paused = settle_at(&mut view, first, BURY, shortly_before).unwrap();
    assert!(paused.marked);
    assert_eq!(view.live[&ahead].mark, Some(Mark::TakeBack));
}

#[test]
fn a_resume_and_a_new_bound_begin_with_nothing_and_an_edit_keeps_the_count() {
    let by: Arc<str> = Arc::from("someone");
    let mut view = view(Some(9));
    end(&mut view, BURY);
    end(&mut view, BURY);
    let job = view.job.clone().unwrap();
    let edited = |max| {
        let mut def = Definition::clone(&job.def);
        def.pause_after_failures = max;
        job.edited(None, def, at(200), &by).0
    };
    assert_eq!(edited(FailuresMax::new(5)).failures, Some(2));
    let without = edited(None);
    assert_eq!(without.failures, None);
    let (again, _) = without.edited(None, Definition::clone(&job.def), at(201), &by);
    assert_eq!(again.failures, Some(0));
    let (paused, _) = job.paused(at(200), None, &by);
    let (resumed, _) = paused.resumed(at(201), false, &by);
    assert_eq!((paused.failures, resumed.failures), (Some(2), Some(0)));
}

#[test]
fn a_job_that_bounds_no_failures_is_not_written_for_them() {
    let mut view = view(None);
    let run = fire(&mut view);
    view.effects.job = None;
    assert_eq!(settle(&mut view, run, BURY), None);
    assert_eq!((view.effects.job, view.effects.paused), (None, None));
}

#[test]
fn a_note_keeps_its_bound_whatever_the_error() {
    let mut view = view(Some(1));
    let run = fire(&mut view);
    let run = view.live[&run].clone();
    let report = Report::failed("ü".repeat(limits::NOTE_MAX));
    let attempt = Attempt::new(run.attempt, None, at(61), report);
    let settlement = Settlement {
        attempt: Some(attempt),
        run,
        verdict: BURY,
    };
    let note = note(1, &settlement);
    assert!(note.len() <= limits::NOTE_MAX && note.len() > limits::NOTE_MAX - 2);
}
