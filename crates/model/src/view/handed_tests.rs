use super::*;
use crate::attempt::RetryHint;
use crate::id::TenantId;
use crate::limits;
use crate::policy::Delivery;
use crate::run::Reason;
use crate::schedule::Schedule;
use crate::target::Target;
use crate::time::Slot;
use crate::view::Cancelled;

const ME: PresenceId = PresenceId(uuid::Uuid::from_u128(1));
const WITHIN: Duration = Duration::from_secs(60);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + secs * 1_000)
}

fn job(change: impl Fn(&mut Definition)) -> Job {
    let target = Target::http("http://localhost/").unwrap();
    let mut def = Definition::new(Schedule::from(Slot(at(0))), target);
    def.completion = Completion::Callback {
        heartbeat_within: WITHIN,
    };
    def.timeout = Duration::from_secs(600);
    change(&mut def);
    let id = JobId::new(at(0), [1; 10]);
    Job::new(id, TenantId::DEFAULT, None, def, at(0))
}

/// A run that this node has dispatched at 0.
fn claimed(job: Job) -> (View, RunId) {
    let run = Run {
        claim: Some(ME),
        ..Run::of_slot(&job, Slot(at(0)))
    };
    let id = run.id;
    (View::new(job, [run]), id)
}

fn hand_over(view: &mut View, run: RunId, now: i64) -> HandedOver {
    let live = &view.live[&run];
    let it = HandOver {
        run,
        job: live.job,
        attempt: live.attempt,
        node: Arc::from("node"),
        dispatched_at: at(0),
        within: WITHIN,
        timeout: Duration::from_secs(600),
    };
    view.hand_over(&it, ME, at(now))
}

fn handed_over() -> (View, RunId) {
    let (mut view, id) = claimed(job(|_| {}));
    assert_eq!(hand_over(&mut view, id, 1), HandedOver::Done);
    (view, id)
}

fn beat(view: &mut View, run: RunId, attempt: u32, now: i64) -> Beaten {
    let beat = Heartbeat {
        run,
        attempt: AttemptNo(attempt),
        dispatched_at: at(0),
        progress: None,
        checkpoint: None,
    };
    view.heartbeat(&beat, at(now))
}

fn report(view: &mut View, run: RunId, attempt: u32, report: Report) -> HandedEnd {
    let it = Reported {
        run,
        attempt: AttemptNo(attempt),
        dispatched_at: at(0),
        report,
        chance: 0.0,
    };
    view.report(&it, at(10))
}

fn lapse(view: &mut View, run: RunId, until: i64, now: i64) -> HandedEnd {
    let lapse = Lapse {
        run,
        job: view.job.as_ref().unwrap().id,
        attempt: AttemptNo::FIRST,
        until: at(until),
        chance: 0.0,
    };
    view.lapse(&lapse, at(now))
}

fn outcome(end: &HandedEnd) -> (Outcome, Verdict) {
    let HandedEnd::Done(ended) = end else {
        panic!("{end:?}")
    };
    let attempt = ended.settlement.attempt.as_ref().unwrap();
    (attempt.outcome, ended.settlement.verdict)
}

#[test]
fn a_handed_over_run_is_running_and_held_by_nobody_who_ends() {
    let (mut view, id) = handed_over();
    let run = &view.live[&id];
    assert_eq!(run.claim, Some(PresenceId::OUTSIDE));
    assert_eq!(
        (run.state, run.dispatched_at),
        (RunState::Running, Some(at(0)))
    );
    assert_eq!(view.handed[&id].until, Some(at(61)));
    assert_eq!(hand_over(&mut view, id, 2), HandedOver::Stale, "once");
    let lost = Settlement {
        run: view.live[&id].clone(),
        verdict: Verdict::RetryAt(at(5)),
        attempt: None,
    };
    let settled = view.settle(&lost, ME, |_| true, at(5));
    assert_eq!(settled, Settled::Stale, "no search for orphans ends it");
}

#[test]
fn a_heartbeat_before_the_hand_over_is_the_hand_over() {
    let (mut view, id) = claimed(job(|_| {}));
    let beaten = beat(&mut view, id, 1, 5);
    let until = at(65);
    assert_eq!(
        beaten,
        Beaten::Done {
            cancel: false,
            until
        }
    );
    assert_eq!(view.live[&id].claim, Some(PresenceId::OUTSIDE));
    assert_eq!(hand_over(&mut view, id, 6), HandedOver::Stale);
}

#[test]
fn a_report_ends_it_whoever_holds_the_row() {
    for is_written in [true, false] {
        let (mut view, id) = claimed(job(|_| {}));
        if is_written {
            hand_over(&mut view, id, 1);
        }
        let end = report(&mut view, id, 1, Report::succeeded());
        assert_eq!(outcome(&end), (Outcome::Succeeded, Verdict::Succeed));
        let ended = view.effects.history[&id].clone();
        assert_eq!(ended.state, RunState::Succeeded);
        assert_eq!(ended.dispatched_at, Some(at(0)));
        assert_eq!(view.effects.handed[&id], HandedChange::Gone);
        // Reported again, it is answered from the record.
        view.history.outside = Some(Box::new(ended));
        let again = report(&mut view, id, 1, Report::succeeded());
        let HandedEnd::Ended(Some(record)) = again else {
            panic!("{again:?}")
        };
        assert_eq!(record.outcome, Outcome::Succeeded);
    }
}

#[test]
fn a_token_is_good_for_the_current_attempt_only() {
    let (mut view, id) = handed_over();
    let end = report(&mut view, id, 1, Report::failed("no"));
    assert_eq!(outcome(&end).0, Outcome::Failed);
    assert_eq!(view.effects.handed[&id], HandedChange::Rest);
    assert_eq!(view.live[&id].attempt, AttemptNo(2));
    for beaten in [
        beat(&mut view, id, 1, 11),
        view.may_append(id, AttemptNo(1)),
    ] {
        let Beaten::Ended(Some(record)) = beaten else {
            panic!("{beaten:?}")
        };
        assert_eq!(record.outcome, Outcome::Failed);
    }
    // Nobody has begun the second one.
    assert_eq!(beat(&mut view, id, 2, 11), Beaten::Ended(None));
    assert_eq!(
        beat(&mut view, RunId::from_bytes([9; 16]), 1, 11),
        Beaten::Missing
    );
}

#[test]
fn silence_ends_it_as_lost_and_it_is_tried_again_whatever_the_window() {
    let (mut view, id) = claimed(job(|def| def.catch_up.window = Duration::ZERO));
    hand_over(&mut view, id, 1);
    assert_eq!(lapse(&mut view, id, 61, 60), HandedEnd::Stale, "too early");
    assert_eq!(
        lapse(&mut view, id, 50, 70),
        HandedEnd::Stale,
        "it was heard of"
    );
    let end = lapse(&mut view, id, 61, 70);
    assert_eq!(outcome(&end), (Outcome::Lost, Verdict::RetryAt(at(70))));
    assert_eq!((view.live[&id].lost, view.live[&id].claim), (1, None));
}

#[test]
fn silence_of_one_that_wants_no_second_delivery_ends_the_run() {
    let (mut view, id) = claimed(job(|def| def.delivery = Delivery::AtMostOnce));
    hand_over(&mut view, id, 1);
    let end = lapse(&mut view, id, 61, 70);
    assert_eq!(outcome(&end), (Outcome::Lost, Verdict::Bury(Reason::Lost)));
}

#[test]
fn it_ends_the_run_also_when_the_job_was_edited_since() {
    let (mut view, id) = claimed(job(|def| def.delivery = Delivery::AtMostOnce));
    hand_over(&mut view, id, 1);
    let before = view.job.clone().unwrap();
    let def = Definition::clone(&job(|_| {}).def);
    view.job = Some(before.edited(None, def, at(5), &Arc::from("someone")).0);
    let end = lapse(&mut view, id, 61, 70);
    assert_eq!(outcome(&end), (Outcome::Lost, Verdict::Bury(Reason::Lost)));
}

#[test]
fn the_timeout_ends_it_whatever_is_heard() {
    let (mut view, id) = handed_over();
    let until = at(600);
    assert_eq!(
        beat(&mut view, id, 1, 590),
        Beaten::Done {
            cancel: false,
            until
        }
    );
    let end = lapse(&mut view, id, 600, 600);
    let (outcome, verdict) = outcome(&end);
    assert_eq!(outcome, Outcome::TimedOut);
    assert!(matches!(verdict, Verdict::RetryAt(_)), "as its policy says");
}

#[test]
fn a_cancel_is_announced_with_the_next_heartbeat() {
    let (mut view, id) = handed_over();
    let cancelled = view.cancel_run(TenantId::DEFAULT, id, at(20));
    assert_eq!(cancelled, Cancelled::Marked);
    assert_eq!(view.effects.handed[&id], HandedChange::Cancel(at(20)));
    // As a store applies it.
    view.handed.get_mut(&id).unwrap().cancel(at(20));
    let until = at(80);
    let expected = Beaten::Done {
        cancel: true,
        until,
    };
    assert_eq!(beat(&mut view, id, 1, 70), expected);
    assert_eq!(beat(&mut view, id, 1, 79), expected);
    let end = lapse(&mut view, id, 80, 80);
    assert_eq!(
        outcome(&end),
        (Outcome::Cancelled, Verdict::Cancel(Reason::Requested))
    );
    assert_eq!(view.effects.history[&id].state, RunState::Cancelled);
}

#[test]
fn a_cancel_before_the_hand_over_is_kept_by_it() {
    let (mut view, id) = claimed(job(|_| {}));
    view.cancel_run(TenantId::DEFAULT, id, at(1));
    assert!(view.effects.handed.is_empty(), "a node has it");
    hand_over(&mut view, id, 2);
    assert!(view.handed[&id].cancelled);
    assert_eq!(view.handed[&id].until, Some(at(62)));
    let end = report(&mut view, id, 1, Report::failed("stopped"));
    assert_eq!(outcome(&end).0, Outcome::Failed);
    assert_eq!(
        view.effects.history[&id].state,
        RunState::Cancelled,
        "not tried again"
    );
}

#[test]
fn what_succeeds_before_it_hears_of_a_cancel_did() {
    let (mut view, id) = handed_over();
    view.cancel_run(TenantId::DEFAULT, id, at(5));
    report(&mut view, id, 1, Report::succeeded());
    assert_eq!(view.effects.history[&id].state, RunState::Succeeded);
}

#[test]
fn a_report_may_say_that_trying_again_cannot_help() {
    let (mut view, id) = handed_over();
    let never = Report::failed("no").with_retry(RetryHint::Never);
    let end = report(&mut view, id, 1, never);
    assert_eq!(outcome(&end).1, Verdict::Bury(Reason::Refused));
}

#[test]
fn lost_again_and_again_it_is_poison() {
    let (mut view, id) = handed_over();
    view.live.get_mut(&id).unwrap().lost = limits::LOST_MAX - 1;
    let end = lapse(&mut view, id, 61, 70);
    assert_eq!(
        outcome(&end),
        (Outcome::Lost, Verdict::Bury(Reason::Poison))
    );
}

#[test]
fn what_is_kept_of_nobody_goes() {
    let (mut view, id) = handed_over();
    view.live.clear();
    assert_eq!(lapse(&mut view, id, 61, 70), HandedEnd::Stale);
    assert_eq!(view.effects.handed[&id], HandedChange::Gone);
}

#[test]
fn a_lapse_that_comes_again_leaves_what_the_next_attempt_gets() {
    let (mut view, id) = handed_over();
    let before = view.handed[&id].clone();
    lapse(&mut view, id, 61, 70);
    assert_eq!(view.effects.handed[&id], HandedChange::Rest);
    // As a store has it: the attempt has ended, and the run goes on.
    view.handed.insert(
        id,
        Handed {
            until: None,
            ..before.clone()
        },
    );
    view.effects.handed.clear();
    assert_eq!(lapse(&mut view, id, 61, 71), HandedEnd::Stale);
    assert!(view.effects.handed.is_empty());
    view.handed.insert(id, before);
    assert_eq!(lapse(&mut view, id, 61, 72), HandedEnd::Stale);
    assert_eq!(view.effects.handed[&id], HandedChange::Rest);
}
