//! Late is not lost: a delay that is the system's own is no overlap. Jobs here are due every second, from second 60 on.

use std::sync::Arc;
use std::time::Duration;

use model::policy::CatchUp;
use model::view::Known;
use model::{
    CatchUpPolicy, Job, Mark, Overlap, Reason, Run, RunId, RunKind, RunState, TenantId, Timestamp,
    Verdict, Wait, WaitReason,
};

use super::{Kept, Subject, at, every, firing, job_with, settlement, slot};
use crate::{BoxError, Claimed, Fired, Firing, RunsOfChange, StartRun};

/// Every policy that keeps runs apart.
const APART: [Overlap; 4] = [
    Overlap::Skip,
    Overlap::QueueOne,
    Overlap::QueueAll { max: 3 },
    Overlap::CancelRunning,
];

async fn put(subject: &Subject, number: u8, overlap: Overlap) -> Result<Arc<Job>, BoxError> {
    let mut job = job_with(number, |def| {
        def.overlap = overlap;
        def.catch_up = CatchUp {
            policy: CatchUpPolicy::All,
            window: Duration::from_secs(3_600),
            max: 100,
        };
    })?;
    let mut def = model::Definition::clone(&job.def);
    def.schedule = every(1)?;
    def.schedule.bounds.starts_at = Some(at(60));
    job = Job::new(job.id, job.tenant, None, def, at(0));
    subject.put(job).await
}

fn id(job: &Job, secs: i64) -> RunId {
    RunId::for_slot(job.id, slot(secs))
}

fn millis(secs: i64, millis: u64) -> Timestamp {
    at(secs).plus(Duration::from_millis(millis))
}

/// Fires the job's next slot at a moment, by a node that knows so much.
async fn fire(
    subject: &Subject,
    job: &Job,
    now: Timestamp,
    knows: &[Known],
) -> Result<Fired, BoxError> {
    let job = subject.job(job.id).await?;
    let firing = Firing {
        knows: knows.to_vec(),
        ..firing(&job, now)
    };
    let fired = subject.store.fire(&subject.leases, &[firing]).await?;
    Ok(fired.into_iter().next().ok_or("no answer")?)
}

fn waits(run: RunId) -> Known {
    Known {
        run,
        dispatched_at: None,
        ended_at: None,
    }
}

fn runs(run: RunId, dispatched_at: Timestamp) -> Known {
    Known {
        dispatched_at: Some(dispatched_at),
        ..waits(run)
    }
}

/// Ends a run that was dispatched and ended at these moments; answers what that sets free.
async fn end(
    subject: &Subject,
    run: RunId,
    dispatched_at: Timestamp,
    ended_at: Timestamp,
) -> Result<crate::Settled, BoxError> {
    let run = subject.run(run).await?;
    let mut settlement = settlement(&run, Verdict::Succeed);
    if let Some(attempt) = &mut settlement.attempt {
        (attempt.dispatched_at, attempt.settled_at) = (Some(dispatched_at), ended_at);
    }
    subject.settle(settlement).await
}

pub async fn a_run_that_was_not_dispatched_by_then_is_no_overlap(subject: Subject) -> Kept {
    for (number, overlap) in (1..).zip(APART) {
        let job = put(&subject, number, overlap).await?;
        let first = id(&job, 60);
        // The node is overloaded: the run is claimed, and waits for its turn.
        assert_eq!(
            fire(&subject, &job, at(60), &[]).await?,
            Fired::Claimed(first)
        );
        for secs in [61, 62] {
            let fired = fire(&subject, &job, at(secs), &[waits(first)]).await?;
            assert_eq!(fired, Fired::Waiting(id(&job, secs)), "{overlap:?}");
        }
        let settled = end(&subject, first, at(62), millis(62, 1)).await?;
        assert_eq!(settled, super::freed(id(&job, 61)), "{overlap:?}");
    }
    Ok(())
}

pub async fn a_late_slot_runs_after_the_late_one_before_it(subject: Subject) -> Kept {
    for (number, overlap) in (1..).zip(APART) {
        let job = put(&subject, number, overlap).await?;
        let first = id(&job, 60);
        // The store was away from second 60 to second 66.
        fire(&subject, &job, at(66), &[]).await?;
        let fired = fire(&subject, &job, millis(66, 5), &[runs(first, at(66))]).await?;
        assert_eq!(fired, Fired::Waiting(id(&job, 61)), "{overlap:?}");
        let settled = end(&subject, first, at(66), millis(66, 1)).await?;
        assert_eq!(settled, super::freed(id(&job, 61)));
        let claim = [id(&job, 61)];
        let claimed = subject.store.claim(&subject.leases, &claim).await?;
        assert!(matches!(claimed[..], [Claimed::Ours(..)]), "{claimed:?}");
    }
    Ok(())
}

/// Nobody knows whether the target kept the run from starting when the late slot was due.
pub async fn a_late_slot_runs_after_a_run_that_waits_for_its_target(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Skip).await?;
    let first = id(&job, 60);
    fire(&subject, &job, at(60), &[]).await?;
    let held = subject.run(first).await?;
    let breaker = Wait::until(WaitReason::Breaker, at(180));
    let waits = settlement(&held, Verdict::Wait(breaker));
    subject.settle(waits).await?;
    let fired = fire(&subject, &job, millis(61, 200), &[]).await?;
    assert_eq!(fired, Fired::Skipped(Reason::Overlap));
    let second = id(&job, 62);
    let fired = fire(&subject, &job, millis(62, 300), &[]).await?;
    assert_eq!(fired, Fired::Waiting(second));
    Ok(())
}

pub async fn a_run_that_counts_has_the_policy_decide(subject: Subject) -> Kept {
    let (overlap, full) = (Reason::Overlap, Reason::QueueFull);
    // How many slots wait for the run, and why the next is skipped.
    let table = [
        (Overlap::Skip, 0, overlap),
        (Overlap::QueueOne, 1, overlap),
        (Overlap::QueueAll { max: 3 }, 3, full),
    ];
    for (number, (policy, waiting, reason)) in (1..).zip(table) {
        let job = put(&subject, number, policy).await?;
        fire(&subject, &job, at(60), &[]).await?;
        let counts = [runs(id(&job, 60), at(60))];
        for secs in 61..61 + waiting {
            let fired = fire(&subject, &job, at(secs), &counts).await?;
            assert_eq!(fired, Fired::Waiting(id(&job, secs)), "{policy:?}");
        }
        let fired = fire(&subject, &job, at(61 + waiting), &counts).await?;
        assert_eq!(fired, Fired::Skipped(reason), "{policy:?}");
    }
    Ok(())
}

pub async fn a_run_that_counts_is_replaced_or_let_be(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::CancelRunning).await?;
    fire(&subject, &job, at(60), &[]).await?;
    let counts = [runs(id(&job, 60), at(60))];
    for secs in [61, 62] {
        let fired = fire(&subject, &job, at(secs), &counts).await?;
        assert_eq!(fired, Fired::Waiting(id(&job, secs)));
        let replaced = subject.run(id(&job, 60)).await?;
        assert_eq!(replaced.mark, Some(Mark::Cancel(Reason::Replaced)));
    }
    // The slot in between gave way to the newer one before it began.
    let between = subject.run(id(&job, 61)).await?;
    let expected = (RunState::Cancelled, Some(Reason::Replaced));
    assert_eq!((between.state, between.reason), expected);

    let job = put(&subject, 2, Overlap::Allow).await?;
    fire(&subject, &job, at(60), &[]).await?;
    for secs in 61..80 {
        let counts = [runs(id(&job, 60), at(60))];
        let fired = fire(&subject, &job, at(secs), &counts).await?;
        assert_eq!(fired, Fired::Claimed(id(&job, secs)));
    }
    Ok(())
}

pub async fn a_run_that_started_late_is_given_as_much_longer(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Skip).await?;
    let first = id(&job, 60);
    fire(&subject, &job, millis(60, 200), &[]).await?;
    let known = [runs(first, millis(60, 200))];
    let again = Fired::Early(millis(61, 200));
    assert_eq!(fire(&subject, &job, at(61), &known).await?, again);
    let ended = [Known {
        ended_at: Some(millis(61, 100)),
        ..known[0]
    }];
    // On time it would have ended at 60.9. Its end is on its way to the store; if it does not arrive, the run goes on.
    let second = id(&job, 61);
    let fired = fire(&subject, &job, millis(61, 110), &ended).await?;
    assert_eq!(fired, Fired::Waiting(second));
    let settled = end(&subject, first, millis(60, 200), millis(61, 100)).await?;
    assert_eq!(settled, super::freed(second));
    Ok(())
}

pub async fn a_run_that_ended_meanwhile_counts_for_skip_alone(subject: Subject) -> Kept {
    for (number, overlap) in (1..).zip(APART) {
        let job = put(&subject, number, overlap).await?;
        let first = id(&job, 60);
        fire(&subject, &job, at(60), &[]).await?;
        end(&subject, first, at(60), millis(61, 500)).await?;
        // Slot 61 is fired late, when its overlap is over; slot 62 did not overlap with anything.
        let expected = match overlap {
            Overlap::Skip => Fired::Skipped(Reason::Overlap),
            Overlap::QueueOne
            | Overlap::QueueAll { .. }
            | Overlap::CancelRunning
            | Overlap::Allow => Fired::Claimed(id(&job, 61)),
        };
        let fired = fire(&subject, &job, at(63), &[]).await?;
        assert_eq!(fired, expected, "{overlap:?}");
        if overlap == Overlap::Skip {
            let fired = fire(&subject, &job, at(63), &[]).await?;
            assert_eq!(fired, Fired::Claimed(id(&job, 62)));
        }
    }
    Ok(())
}

/// Plan read the job before it ever had a run.
pub async fn a_manual_run_that_came_and_ended_since_plan_counts(subject: Subject) -> Kept {
    let planned = put(&subject, 1, Overlap::Skip).await?;
    let run = Run {
        id: RunId::of_request(planned.id, at(59), 1),
        kind: RunKind::Manual,
        slot: None,
        due_at: at(59),
        ..Run::of_slot(&planned, slot(59))
    };
    let manual = run.id;
    let start = StartRun { run, force: false };
    subject.store.start_run(&start).await?;
    subject.claim(&subject.leases, manual).await?;
    end(&subject, manual, at(59), millis(60, 500)).await?;
    let batch = [firing(&planned, at(62))];
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, [Fired::Skipped(Reason::Overlap)]);
    Ok(())
}

pub async fn missed_slots_run_one_after_another(subject: Subject) -> Kept {
    for (number, overlap) in (1..).zip(APART) {
        let job = put(&subject, number, overlap).await?;
        let mut now = at(100);
        for secs in 60..64 {
            let run = id(&job, secs);
            assert_eq!(
                fire(&subject, &job, now, &[]).await?,
                Fired::Claimed(run),
                "{overlap:?}"
            );
            let stands = subject.job(job.id).await?;
            let again = Fired::Early(now.plus(Duration::from_secs(1)));
            let early = fire(&subject, &job, now, &[runs(run, now)]).await?;
            assert_eq!(early, again, "{overlap:?}");
            assert_eq!(subject.job(job.id).await?, stands, "it waits for its turn");
            end(&subject, run, now, now.plus(Duration::from_millis(1))).await?;
            now = now.plus(Duration::from_millis(20));
        }
    }
    Ok(())
}

pub async fn a_job_that_allows_overlap_catches_up_at_once(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Allow).await?;
    for secs in 60..64 {
        let fired = fire(&subject, &job, at(100), &[]).await?;
        assert_eq!(fired, Fired::Claimed(id(&job, secs)));
    }
    Ok(())
}

pub async fn so_many_late_slots_wait_and_no_more(subject: Subject) -> Kept {
    for (number, overlap) in (1..).zip(APART) {
        let job = put(&subject, number, overlap).await?;
        let first = id(&job, 60);
        fire(&subject, &job, at(60), &[]).await?;
        for secs in 61..=71 {
            let fired = fire(&subject, &job, at(secs), &[waits(first)]).await?;
            assert_eq!(fired, Fired::Waiting(id(&job, secs)), "{overlap:?}");
        }
        let fired = fire(&subject, &job, at(72), &[waits(first)]).await?;
        assert_eq!(fired, Fired::Skipped(Reason::Overload), "{overlap:?}");
        let entry = subject.run(id(&job, 72)).await?;
        let expected = (RunState::Skipped, Some(Reason::Overload));
        assert_eq!((entry.state, entry.reason), expected, "{overlap:?}");
    }
    Ok(())
}

pub async fn what_allows_overlap_waits_for_its_lane_alone(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Allow).await?;
    let mut held = Vec::new();
    // None of them is dispatched.
    for secs in 60..90 {
        let fired = fire(&subject, &job, at(secs), &held).await?;
        assert_eq!(fired, Fired::Claimed(id(&job, secs)));
        held.push(waits(id(&job, secs)));
    }
    // And some are late.
    for secs in 90..95 {
        let fired = fire(&subject, &job, at(99), &held).await?;
        assert_eq!(fired, Fired::Claimed(id(&job, secs)));
    }
    Ok(())
}

/// Paused at second 59, resumed at 75.5: up to slot 65 they are missed, from 66 on they are only late.
async fn resumed(subject: &Subject, number: u8, overlap: Overlap) -> Result<Arc<Job>, BoxError> {
    let job = put(subject, number, overlap).await?;
    let paused = job.paused(at(59), None, &super::someone());
    subject.change(&job, paused, RunsOfChange::TakeBack).await?;
    let stands = subject.job(job.id).await?;
    let resumed = stands.resumed(millis(75, 500), true, &super::someone());
    subject.change(&stands, resumed, RunsOfChange::Keep).await?;
    Ok(job)
}

pub async fn what_a_pause_held_back_is_missed_or_late(subject: Subject) -> Kept {
    for (number, overlap) in (1..).zip(APART) {
        let job = resumed(&subject, number, overlap).await?;
        let mut now = millis(75, 500);
        for secs in 60..=65 {
            let run = id(&job, secs);
            let fired = fire(&subject, &job, now, &[]).await?;
            assert_eq!(fired, Fired::Claimed(run), "{overlap:?}");
            if secs < 65 {
                let fired = fire(&subject, &job, now, &[runs(run, now)]).await?;
                assert!(matches!(fired, Fired::Early(_)), "{overlap:?}: {fired:?}");
            }
            end(&subject, run, now, now.plus(Duration::from_millis(1))).await?;
            now = now.plus(Duration::from_millis(20));
        }
        let late = id(&job, 66);
        let fired = fire(&subject, &job, now, &[]).await?;
        assert_eq!(fired, Fired::Claimed(late), "{overlap:?}");
        let fired = fire(&subject, &job, now, &[runs(late, now)]).await?;
        assert_eq!(fired, Fired::Waiting(id(&job, 67)), "{overlap:?}");
    }
    let job = resumed(&subject, 9, Overlap::Allow).await?;
    for secs in 60..=75 {
        let fired = fire(&subject, &job, millis(75, 500), &[]).await?;
        assert_eq!(fired, Fired::Claimed(id(&job, secs)));
    }
    Ok(())
}

pub async fn what_another_node_holds_counts_when_it_says_so(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Skip).await?;
    fire(&subject, &job, at(60), &[]).await?;
    let run = id(&job, 60);
    let theirs = subject.hand_over().await?;
    let stands = subject.job(job.id).await?;
    let fire_at = async |now: Timestamp| -> Result<Fired, BoxError> {
        let batch = [firing(&stands, now)];
        let fired = subject.store.fire(&theirs, &batch).await?;
        Ok(fired.into_iter().next().ok_or("no answer")?)
    };
    assert_eq!(fire_at(at(61)).await?, Fired::Early(millis(61, 250)));
    let marks = [(run, at(60))];
    subject
        .store
        .mark_running(subject.presence(), &marks)
        .await?;
    // Its end may be on the way.
    assert_eq!(fire_at(at(61)).await?, Fired::Early(millis(61, 250)));
    assert_eq!(
        fire_at(millis(61, 250)).await?,
        Fired::Skipped(Reason::Overlap)
    );
    Ok(())
}

pub async fn what_another_node_has_not_marked_in_time_is_waited_for(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Skip).await?;
    fire(&subject, &job, at(60), &[]).await?;
    let theirs = subject.hand_over().await?;
    let stands = subject.job(job.id).await?;
    // Had it been dispatched by second 61, it would have been marked by second 62.
    let batch = [firing(&stands, at(63))];
    let fired = subject.store.fire(&theirs, &batch).await?;
    assert_eq!(fired, [Fired::Waiting(id(&job, 61))]);
    Ok(())
}

pub async fn an_edit_that_allows_overlap_frees_what_waits(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Skip).await?;
    let first = id(&job, 60);
    fire(&subject, &job, at(60), &[]).await?;
    for secs in [61, 62] {
        fire(&subject, &job, at(secs), &[waits(first)]).await?;
    }
    let stands = subject.job(job.id).await?;
    let mut def = model::Definition::clone(&stands.def);
    def.overlap = Overlap::Allow;
    let edited = stands.edited(None, def, millis(62, 500), &super::someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    let free = subject.due_run_ids(at(99)).await?;
    assert_eq!(free, [id(&job, 61), id(&job, 62)]);
    Ok(())
}

pub async fn a_run_keeps_its_first_dispatch_through_retries(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Skip).await?;
    fire(&subject, &job, at(60), &[]).await?;
    let run = subject.run(id(&job, 60)).await?;
    let mut retry = settlement(&run, Verdict::RetryAt(at(64)));
    if let Some(attempt) = &mut retry.attempt {
        (attempt.dispatched_at, attempt.settled_at) = (Some(at(60)), millis(60, 100));
    }
    subject.settle(retry).await?;
    let waiting = subject.run(run.id).await?;
    assert_eq!(
        (waiting.state, waiting.dispatched_at),
        (RunState::Retrying, Some(at(60)))
    );
    let fired = fire(&subject, &job, at(61), &[]).await?;
    assert_eq!(
        fired,
        Fired::Skipped(Reason::Overlap),
        "in backoff it lives"
    );
    subject.store.claim(&subject.leases, &[run.id]).await?;
    let marks = [(run.id, at(64))];
    subject
        .store
        .mark_running(subject.presence(), &marks)
        .await?;
    assert_eq!(subject.run(run.id).await?.dispatched_at, Some(at(60)));
    end(&subject, run.id, at(64), at(65)).await?;
    let ended: Option<Run> = subject.store.get_run(TenantId::DEFAULT, run.id).await?;
    assert_eq!(ended.and_then(|run| run.dispatched_at), Some(at(60)));
    Ok(())
}

pub async fn a_catch_up_is_counted_once(subject: Subject) -> Kept {
    let job = put(&subject, 1, Overlap::Allow).await?;
    // Of 200 missed slots the newest hundred run, also those that grow too many meanwhile.
    fire(&subject, &job, at(270), &[]).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.slot_last, stands.catch_up_to),
        (Some(at(160)), Some(at(259)))
    );
    let fired = fire(&subject, &job, at(400), &[]).await?;
    assert_eq!(fired, Fired::Claimed(id(&job, 161)));
    Ok(())
}
