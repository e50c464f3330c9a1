use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::attempt::{Attempt, AttemptNo, Outcome, Report};
use crate::id::{JobId, PresenceId, TenantId};
use crate::job::{Definition, Version};
use crate::limits;
use crate::policy::Overlap;
use crate::retry::Verdict;
use crate::schedule::{Every, Period, Zone};
use crate::target::Target;

const ME: PresenceId = PresenceId(uuid::Uuid::from_u128(1));
const OTHER: PresenceId = PresenceId(uuid::Uuid::from_u128(2));

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + secs * 1_000)
}

/// Due every minute.
fn job(overlap: Overlap) -> Job {
    let period = Period::Elapsed(Duration::from_secs(60));
    let every = Every::new(period, at(0), Zone::utc()).unwrap();
    let mut def = Definition::new(
        Schedule::from(every),
        Target::http("http://localhost/").unwrap(),
    );
    def.overlap = overlap;
    let id = JobId::new(at(0), [1; 10]);
    Job::new(id, TenantId::DEFAULT, None, def, at(0))
}

fn fire(view: &mut View, claim: bool) -> Fired {
    let job = Arc::new(view.job.clone().unwrap());
    let slot = job.next_slot.unwrap();
    let firing = Firing {
        decision: job.decide(slot, job.due_at(slot), &Arc::from("node")),
        job,
        claim,
        knows: Vec::new(),
    };
    view.fire(&firing, ME, true)
}

fn settle(view: &mut View, id: RunId, verdict: Verdict) -> Settled {
    let run = view.live.get(&id).cloned().unwrap();
    let ended = run.due_at.plus(Duration::from_secs(1));
    let attempt = Attempt::new(
        run.attempt,
        Some(run.due_at),
        ended,
        Report::of(Outcome::Failed),
    );
    let settlement = Settlement {
        run,
        verdict,
        attempt: Some(attempt),
    };
    view.settle(&settlement, ME, |_| false, ended)
}

#[test]
fn what_follows_on_one_view_is_written_as_one() {
    let mut view = View::new(job(Overlap::QueueOne), []);
    let Fired::Claimed(first) = fire(&mut view, true) else {
        panic!("nothing lives")
    };
    let Fired::Waiting(second) = fire(&mut view, true) else {
        panic!("one lives")
    };
    let settled = settle(&mut view, first, Verdict::Succeed);
    assert_eq!(
        settled,
        Settled::Done {
            freed: Some(second),
            due_at: None,
            paused: None,
        }
    );
    let effects = &view.effects;
    let inserted: Vec<_> = effects
        .insert
        .iter()
        .map(|it| (it.id, it.wait.is_some()))
        .collect();
    assert_eq!(inserted, [(second, false)], "the first came and went");
    assert!(effects.remove.is_empty() && effects.change.is_empty());
    assert_eq!(effects.history.keys().collect::<Vec<_>>(), [&first]);
    assert_eq!(effects.job.as_ref().unwrap().slot_last, Some(at(120)));
}

#[test]
fn a_run_that_changed_and_went_is_removed_as_it_was_read() {
    let mut view = View::new(job(Overlap::Allow), []);
    let Fired::Claimed(id) = fire(&mut view, true) else {
        panic!("nothing lives")
    };
    let read = View::new(view.job.clone().unwrap(), view.live.values().cloned());
    let mut view = read.clone();
    settle(&mut view, id, Verdict::RetryAt(at(70)));
    let retrying = view.live.get(&id).cloned().unwrap();
    assert_eq!(
        (retrying.state, retrying.attempt, retrying.claim),
        (RunState::Retrying, AttemptNo(2), None)
    );
    assert_eq!(view.effects.change.get(&id).unwrap().was, read.live[&id]);
    view.cancel_run(TenantId::DEFAULT, id, at(65));
    assert!(view.effects.change.is_empty());
    assert_eq!(view.effects.remove, [read.live[&id].clone()]);
}

#[test]
fn only_who_holds_the_claim_settles_unless_its_holder_has_ended() {
    let mut view = View::new(job(Overlap::Allow), []);
    let Fired::Claimed(id) = fire(&mut view, true) else {
        panic!("nothing lives")
    };
    let run = view.live.get(&id).cloned().unwrap();
    let settlement = Settlement {
        run,
        verdict: Verdict::Release,
        attempt: None,
    };
    assert_eq!(
        view.settle(&settlement, OTHER, |_| false, at(60)),
        Settled::Stale
    );
    assert_eq!(
        view.settle(&settlement, OTHER, |it| it == ME, at(60)),
        Settled::DONE
    );
    assert_eq!(
        view.settle(&settlement, ME, |_| false, at(60)),
        Settled::Stale
    );
}

/// Its end may have been on the way when the slot was due.
#[test]
fn a_run_of_another_node_counts_when_its_end_would_have_been_written() {
    let mut view = View::new(job(Overlap::Skip), []);
    let Fired::Claimed(first) = fire(&mut view, true) else {
        panic!("nothing lives")
    };
    view.live.get_mut(&first).unwrap().dispatched_at = Some(at(60));
    let job = Arc::new(view.job.clone().unwrap());
    let slot = job.next_slot.unwrap();
    let written_at = at(120).plus(limits::END_WRITTEN_AFTER);
    let fires = |by, now| {
        let firing = Firing {
            decision: job.decide(slot, now, &Arc::from("node")),
            job: Arc::clone(&job),
            claim: true,
            knows: Vec::new(),
        };
        view.clone().fire(&firing, by, true)
    };
    let skipped = Fired::Skipped(Reason::Overlap);
    assert_eq!(fires(ME, at(120)), skipped, "its holder would know");
    assert_eq!(fires(OTHER, at(120)), Fired::Early(written_at));
    assert_eq!(fires(OTHER, written_at), skipped);
}

#[test]
fn a_retry_claimed_long_before_it_is_due_is_due_now() {
    let mut view = View::new(job(Overlap::Allow), []);
    let Fired::Ready(id) = fire(&mut view, false) else {
        panic!("nothing lives")
    };
    let run = view.live.get(&id).cloned().unwrap();
    let mut soon = run.clone();
    assert_eq!(
        claim(&mut soon, ME, true, Version::FIRST, at(58)),
        Grant::New
    );
    assert_eq!(soon.due_at, at(60));
    let mut astray = Run {
        due_at: at(7_200),
        attempt: AttemptNo(2),
        state: RunState::Retrying,
        ..run
    };
    assert_eq!(
        claim(&mut astray, ME, true, Version::FIRST, at(58)),
        Grant::New
    );
    assert_eq!(astray.due_at, at(58));
    assert_eq!(
        claim(&mut astray, OTHER, true, Version::FIRST, at(58)),
        Grant::Stale
    );
}
