//! Overlap: a slot that meets runs still alive, and what their end sets free.

use std::sync::Arc;
use std::time::Duration;

use model::{Definition, Mark, Overlap, Reason, Run, RunId, RunState, TenantId, Verdict};

use super::{DONE, Kept, Subject, at, firing, freed, job_with, settlement, skip, slot, someone};
use crate::{
    BoxError, Cancelled, Fired, Firing, NodeStatus, RunsOfChange, StartRun, Started, Withdrawal,
};

async fn put(subject: &Subject, overlap: Overlap) -> Result<Arc<model::Job>, BoxError> {
    subject.put(job_with(1, |def| def.overlap = overlap)?).await
}

fn id(job: &model::Job, secs: i64) -> RunId {
    RunId::for_slot(job.id, slot(secs))
}

fn ended(run: &Run) -> (RunState, Option<Reason>) {
    (run.state, run.reason)
}

pub async fn a_job_that_allows_overlap_starts_every_slot(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::Allow).await?;
    for secs in [60, 120, 180] {
        assert_eq!(
            subject.fire(job.id, true).await?,
            Fired::Claimed(id(&job, secs))
        );
    }
    Ok(())
}

pub async fn an_overlapping_slot_is_skipped_with_its_reason(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::Skip).await?;
    let first = subject.claimed(job.id).await?;
    let before = subject.job(job.id).await?;
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Skipped(Reason::Overlap)
    );
    let entry = subject.run(id(&job, 120)).await?;
    let skip = skip(120, 120, Reason::Overlap);
    assert_eq!(entry, Run::skipped(&before, &skip, at(120)));
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.next_slot, stands.slot_last),
        (Some(slot(180)), Some(at(120)))
    );
    subject.settle(settlement(&first, Verdict::Succeed)).await?;
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Claimed(id(&job, 180))
    );
    Ok(())
}

pub async fn a_run_in_backoff_counts_as_living(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::Skip).await?;
    let first = subject.claimed(job.id).await?;
    subject
        .settle(settlement(&first, Verdict::RetryAt(at(300))))
        .await?;
    assert_eq!(
        fire_one(&subject, &job, 121).await?,
        Fired::Skipped(Reason::Overlap)
    );
    Ok(())
}

pub async fn a_queue_of_one_holds_one(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueOne).await?;
    subject.claimed(job.id).await?;
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Waiting(id(&job, 120))
    );
    let waiting = subject.run(id(&job, 120)).await?;
    assert!(
        waiting.waits_for_turn() && waiting.claim.is_none(),
        "{waiting:?}"
    );
    assert_eq!(waiting.state, RunState::Ready);
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Skipped(Reason::Overlap)
    );
    Ok(())
}

pub async fn a_full_queue_skips_and_says_so(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueAll { max: 2 }).await?;
    subject.claimed(job.id).await?;
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Waiting(id(&job, 120))
    );
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Waiting(id(&job, 180))
    );
    assert_eq!(
        subject.fire(job.id, true).await?,
        Fired::Skipped(Reason::QueueFull)
    );
    assert_eq!(
        ended(&subject.run(id(&job, 240)).await?).1,
        Some(Reason::QueueFull)
    );
    Ok(())
}

pub async fn a_waiting_run_is_freed_by_the_end_of_the_one_before(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueOne).await?;
    let first = subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    assert_eq!(subject.due_run_ids(at(999)).await?, []);
    let settled = subject.settle(settlement(&first, Verdict::Succeed)).await?;
    let second = id(&job, 120);
    assert_eq!(settled, freed(second));
    assert_eq!(subject.due_run_ids(at(999)).await?, [second]);
    assert!(!subject.run(second).await?.waits_for_turn());
    Ok(())
}

pub async fn waiting_runs_are_freed_one_by_one_from_the_oldest(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueAll { max: 9 }).await?;
    let mut run = subject.claimed(job.id).await?;
    for _ in 0..2 {
        subject.fire(job.id, true).await?;
    }
    for secs in [120, 180] {
        let verdict = Verdict::Bury(Reason::Refused);
        let settled = subject.settle(settlement(&run, verdict)).await?;
        assert_eq!(settled, freed(id(&job, secs)));
        subject
            .store
            .claim(&subject.leases, &[id(&job, secs)])
            .await?;
        run = subject.run(id(&job, secs)).await?;
    }
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, DONE);
    Ok(())
}

pub async fn a_retry_frees_nobody(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueOne).await?;
    let first = subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    for verdict in [Verdict::RetryAt(at(90)), Verdict::Release] {
        subject.store.claim(&subject.leases, &[first.id]).await?;
        let run = subject.run(first.id).await?;
        let settled = subject.settle(settlement(&run, verdict)).await?;
        assert_eq!(settled, DONE, "{verdict:?}");
    }
    assert!(subject.run(id(&job, 120)).await?.waits_for_turn());
    Ok(())
}

pub async fn a_newer_run_replaces_those_that_nobody_holds(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::CancelRunning).await?;
    let first = subject.claimed(job.id).await?;
    let retry = settlement(&first, Verdict::RetryAt(at(300)));
    subject.settle(retry).await?;
    assert_eq!(
        fire_one(&subject, &job, 121).await?,
        Fired::Claimed(id(&job, 120))
    );
    let replaced = subject.run(first.id).await?;
    assert_eq!(
        ended(&replaced),
        (RunState::Cancelled, Some(Reason::Replaced))
    );
    assert_eq!(
        replaced.settled_at,
        Some(at(121)),
        "when the late slot is decided, not when it was due"
    );
    Ok(())
}

pub async fn a_newer_run_waits_for_the_one_it_stops(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::CancelRunning).await?;
    let first = subject.claimed(job.id).await?;
    let second = id(&job, 120);
    assert_eq!(subject.fire(job.id, true).await?, Fired::Waiting(second));
    let mark = Mark::Cancel(Reason::Replaced);
    assert_eq!(
        subject
            .store
            .beat(subject.presence(), &NodeStatus::default())
            .await?
            .marks,
        [(first.id, mark)]
    );
    let verdict = Verdict::Cancel(Reason::Replaced);
    let settled = subject.settle(settlement(&first, verdict)).await?;
    assert_eq!(settled, freed(second));
    let first = subject.run(first.id).await?;
    assert_eq!(ended(&first), (RunState::Cancelled, Some(Reason::Replaced)));
    Ok(())
}

pub async fn a_newer_run_replaces_those_that_wait(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::CancelRunning).await?;
    let first = subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    let third = id(&job, 180);
    assert_eq!(subject.fire(job.id, true).await?, Fired::Waiting(third));
    let second = subject.run(id(&job, 120)).await?;
    assert_eq!(
        ended(&second),
        (RunState::Cancelled, Some(Reason::Replaced))
    );
    assert!(!second.waits_for_turn());
    let settled = subject.settle(settlement(&first, Verdict::Succeed)).await?;
    assert_eq!(settled, freed(third));
    Ok(())
}

pub async fn a_cancelled_run_frees_the_one_that_waits(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueOne).await?;
    let first = subject.ready(job.id).await?;
    subject.fire(job.id, true).await?;
    let cancelled = subject
        .store
        .cancel_run(TenantId::DEFAULT, first.id, at(90))
        .await?;
    assert!(matches!(cancelled, Cancelled::Done(_)), "{cancelled:?}");
    assert_eq!(subject.due_run_ids(at(999)).await?, [id(&job, 120)]);
    Ok(())
}

/// A run by hand that waits for a slot's run ahead of its time.
async fn queued_by_hand(subject: &Subject, job: &model::Job) -> Result<Run, BoxError> {
    let id = RunId::of_request(job.id, at(5), 1);
    let (kind, slot) = (model::RunKind::Manual, None);
    let run = Run {
        id,
        kind,
        slot,
        due_at: at(5),
        ..Run::of_slot(job, super::slot(5))
    };
    let started = subject
        .store
        .start_run(&StartRun {
            run: run.clone(),
            force: false,
        })
        .await?;
    assert_eq!(started, Started::Waiting);
    Ok(run)
}

pub async fn a_run_taken_back_frees_the_one_that_waits(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueOne).await?;
    subject.ready(job.id).await?;
    let manual = queued_by_hand(&subject, &job).await?;
    let stands = subject.job(job.id).await?;
    let edited = stands.edited(None, Definition::clone(&job.def), at(58), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    assert_eq!(subject.due_run_ids(at(999)).await?, [manual.id]);
    Ok(())
}

pub async fn a_run_withdrawn_frees_the_one_that_waits(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::QueueOne).await?;
    let held = subject.claimed(job.id).await?;
    let manual = queued_by_hand(&subject, &job).await?;
    let stands = subject.job(job.id).await?;
    let edited = stands.edited(None, Definition::clone(&job.def), at(58), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    assert_eq!(subject.due_run_ids(at(999)).await?, []);
    let answer = Withdrawal {
        run: held.id,
        taken_back: true,
    };
    subject
        .store
        .withdraw(subject.presence(), &[answer], at(59))
        .await?;
    assert_eq!(subject.due_run_ids(at(999)).await?, [manual.id]);
    Ok(())
}

/// The firing at `now` of a job's next slot, to be claimed as it is inserted.
async fn fire_one(subject: &Subject, job: &model::Job, now: i64) -> Result<Fired, BoxError> {
    let job = subject.job(job.id).await?;
    let batch = [Firing {
        knows: subject.knows(job.id).await?,
        ..firing(&job, at(now))
    }];
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    Ok(fired.into_iter().next().ok_or("no answer")?)
}

pub async fn a_slot_in_the_way_of_another_is_not_skipped_before_it_is_due(
    subject: Subject,
) -> Kept {
    for (number, overlap, queued, reason) in [
        (1, Overlap::Skip, 0, Reason::Overlap),
        (2, Overlap::QueueOne, 1, Reason::Overlap),
        (3, Overlap::QueueAll { max: 2 }, 2, Reason::QueueFull),
    ] {
        let job = job_with(number, |def| def.overlap = overlap)?;
        let job = subject.put(job).await?;
        subject.claimed(job.id).await?;
        for _ in 0..queued {
            subject.fire(job.id, true).await?;
        }
        let stands = subject.job(job.id).await?;
        let due = 120 + 60 * queued;
        for ahead in [2, 1] {
            let early = Fired::Early(at(due));
            assert_eq!(fire_one(&subject, &job, due - ahead).await?, early);
            assert_eq!(subject.job(job.id).await?, stands, "nothing is decided");
            let entry = subject.store.get_run(TenantId::DEFAULT, id(&job, due));
            assert_eq!(entry.await?, None);
        }
        assert_eq!(fire_one(&subject, &job, due).await?, Fired::Skipped(reason));
        assert_eq!(
            subject.job(job.id).await?.slot_last,
            Some(at(due)),
            "{overlap:?}"
        );
    }
    Ok(())
}

pub async fn a_run_is_not_replaced_before_the_next_is_due(subject: Subject) -> Kept {
    let job = put(&subject, Overlap::CancelRunning).await?;
    let held = subject.claimed(job.id).await?;
    assert_eq!(fire_one(&subject, &job, 119).await?, Fired::Early(at(120)));
    assert_eq!(
        subject.run(held.id).await?,
        held,
        "nobody is marked to stop"
    );
    let second = id(&job, 120);
    assert_eq!(fire_one(&subject, &job, 120).await?, Fired::Waiting(second));
    let mark = Some(Mark::Cancel(Reason::Replaced));
    assert_eq!(subject.run(held.id).await?.mark, mark);
    let free = subject.put(job_with(2, |def| def.overlap = Overlap::CancelRunning)?);
    let free = free.await?;
    let ready = subject.ready(free.id).await?;
    assert_eq!(fire_one(&subject, &free, 119).await?, Fired::Early(at(120)));
    assert_eq!(subject.run(ready.id).await?, ready, "nothing is cancelled");
    Ok(())
}

pub async fn a_slot_that_may_wait_or_start_is_decided_ahead(subject: Subject) -> Kept {
    let number = |number, overlap| job_with(number, |def| def.overlap = overlap);
    let allows = subject.put(number(1, Overlap::Allow)?).await?;
    let queues = subject.put(number(2, Overlap::QueueOne)?).await?;
    let skips = subject.put(number(3, Overlap::Skip)?).await?;
    for job in [&allows, &queues, &skips] {
        let first = Fired::Claimed(id(job, 60));
        assert_eq!(fire_one(&subject, job, 58).await?, first, "nothing lives");
    }
    let second = Fired::Claimed(id(&allows, 120));
    assert_eq!(fire_one(&subject, &allows, 118).await?, second);
    let second = Fired::Waiting(id(&queues, 120));
    assert_eq!(fire_one(&subject, &queues, 118).await?, second);
    Ok(())
}

pub async fn a_slot_that_is_early_leaves_the_rest_of_its_batch_alone(subject: Subject) -> Kept {
    let mut jobs = Vec::new();
    for (number, overlap) in [
        (1, Overlap::Allow),
        (2, Overlap::Skip),
        (3, Overlap::QueueOne),
        (4, Overlap::CancelRunning),
        (5, Overlap::Skip),
    ] {
        jobs.push(subject.put(job_with(number, |def| def.overlap = overlap)?));
    }
    let mut batch = Vec::new();
    for (number, job) in (1..).zip(jobs) {
        let job = job.await?;
        if number < 5 {
            subject.claimed(job.id).await?;
        }
        let job = subject.job(job.id).await?;
        let due_at = job.next_due_at().ok_or("no next slot")?;
        batch.push(firing(&job, due_at.minus(Duration::from_secs(1))));
    }
    let named = |number: usize, secs| id(&batch[number].job, secs);
    let expected = [
        Fired::Claimed(named(0, 120)),
        Fired::Early(at(120)),
        Fired::Waiting(named(2, 120)),
        Fired::Early(at(120)),
        Fired::Claimed(named(4, 60)),
    ];
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, expected);
    let again = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(again, expected, "fired again, it answers as it did");
    Ok(())
}

pub async fn a_slot_that_was_early_starts_when_nothing_is_in_its_way_any_more(
    subject: Subject,
) -> Kept {
    let job = put(&subject, Overlap::Skip).await?;
    let first = subject.claimed(job.id).await?;
    assert_eq!(fire_one(&subject, &job, 119).await?, Fired::Early(at(120)));
    subject.settle(settlement(&first, Verdict::Succeed)).await?;
    let second = Fired::Claimed(id(&job, 120));
    assert_eq!(fire_one(&subject, &job, 119).await?, second);
    Ok(())
}
