//! Claim: the sole right to work on one attempt.

use model::shard::ShardSet;
use model::{
    AttemptNo, Definition, Lane, Outcome, Overlap, Run, RunId, RunState, Verdict, Version,
};

use super::subject::SECOND;
use super::{DONE, Kept, Subject, at, attempt, job, job_with, settlement, slot, someone};
use crate::{BoxError, Claimed, Leases, RunsOfChange};

impl Subject {
    /// Claims one run under these leases.
    pub(super) async fn claim(&self, leases: &Leases, run: RunId) -> Result<Claimed, BoxError> {
        let claimed = self.store.claim(leases, &[run]).await?;
        Ok(claimed
            .into_iter()
            .next()
            .ok_or("a claim without an answer")?)
    }
}

pub async fn a_run_is_claimed_once(subject: Subject) -> Kept {
    let Subject { leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let ready = subject.ready(job.id).await?;
    let stands = subject.job(job.id).await?;
    let held = Run {
        claim: Some(leases.presence),
        ..ready
    };
    let claimed = subject.claim(leases, held.id).await?;
    assert_eq!(claimed, Claimed::Ours(Box::new(held.clone()), stands));
    assert_eq!(subject.run(held.id).await?, held);
    let theirs = subject.hand_over().await?;
    assert_eq!(subject.claim(&theirs, held.id).await?, Claimed::Stale);
    Ok(())
}

pub async fn a_retry_claimed_long_before_it_is_due_is_due_now(subject: Subject) -> Kept {
    let Subject { leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let later = at(3_600 + 60);
    subject
        .settle(settlement(&run, Verdict::RetryAt(later)))
        .await?;
    // The clock that set it has gone back since, and its holder starts it at once.
    let claimed = subject.claim(leases, run.id).await?;
    let Claimed::Ours(claimed, _) = claimed else {
        return Err(format!("claimed as {claimed:?}").into());
    };
    assert_eq!(claimed.due_at, at(0));
    assert_eq!(subject.run(run.id).await?.due_at, at(0));
    Ok(())
}

pub async fn a_repeated_claim_answers_the_same(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let ready = subject.ready(job.id).await?;
    let inserted = subject.claimed(job.id).await?;
    let batch = [ready.id, inserted.id];
    let first = subject.store.claim(&subject.leases, &batch).await?;
    assert!(
        first
            .iter()
            .all(|claimed| matches!(claimed, Claimed::Ours(..))),
        "{first:?}"
    );
    assert_eq!(subject.store.claim(&subject.leases, &batch).await?, first);
    Ok(())
}

pub async fn a_claim_is_its_holders_wherever_its_shard_has_gone(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let inserted = subject.claimed(job.id).await?;
    subject.hand_over().await?;
    // Its answer may have been lost: its holder must be able to hand it back.
    let again = subject.claim(&subject.leases, inserted.id).await?;
    assert!(matches!(again, Claimed::Ours(run, _) if *run == inserted));
    Ok(())
}

pub async fn a_claim_takes_the_job_as_it_stands(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.ready(job.id).await?;
    let stands = subject.job(job.id).await?;
    let def = Definition {
        lane: Lane::Batch,
        ..Definition::clone(&job.def)
    };
    let (edited, _) = subject
        .change(
            &stands,
            stands.edited(None, def, at(61), &someone()),
            RunsOfChange::TakeBack,
        )
        .await?;
    let claimed = subject.claim(&subject.leases, run.id).await?;
    let Claimed::Ours(run, job) = claimed else {
        return Err(format!("{claimed:?}").into());
    };
    assert_eq!((run.version, &*job), (Version(2), &edited));
    assert_eq!(subject.run(run.id).await?.version, Version(2));
    Ok(())
}

pub async fn a_claim_without_its_lease_is_lost(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.ready(job.id).await?;
    assert_eq!(
        subject.claim(&subject.other, run.id).await?,
        Claimed::LeaseLost
    );
    let theirs = subject.hand_over().await?;
    assert_eq!(
        subject.claim(&subject.leases, run.id).await?,
        Claimed::LeaseLost
    );
    subject.store.leave(theirs.presence).await?;
    assert_eq!(subject.claim(&theirs, run.id).await?, Claimed::LeaseLost);
    assert_eq!(subject.run(run.id).await?, run);
    Ok(())
}

pub async fn a_waiting_run_cannot_be_claimed(subject: Subject) -> Kept {
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    let waiting = RunId::for_slot(job.id, slot(120));
    assert_eq!(
        subject.claim(&subject.leases, waiting).await?,
        Claimed::Stale
    );
    assert_eq!(subject.run(waiting).await?.claim, None);
    Ok(())
}

pub async fn a_run_that_is_not_there_is_stale(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let ready = subject.ready(job.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    let never = RunId::for_slot(job.id, slot(9_999));
    let batch = [run.id, ready.id, never];
    let claimed = subject.store.claim(&subject.leases, &batch).await?;
    assert!(
        matches!(
            claimed.as_slice(),
            [Claimed::Stale, Claimed::Ours(..), Claimed::Stale]
        ),
        "{claimed:?}"
    );
    Ok(())
}

pub async fn a_retry_is_claimed_under_its_next_number(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let first = subject.claimed(job.id).await?;
    subject
        .settle(settlement(&first, Verdict::RetryAt(at(70))))
        .await?;
    let claimed = subject.claim(&subject.leases, first.id).await?;
    let Claimed::Ours(run, _) = claimed else {
        return Err(format!("{claimed:?}").into());
    };
    assert_eq!((run.attempt, run.state), (SECOND, RunState::Ready));
    assert_eq!((run.due_at, run.claim), (at(70), Some(subject.presence())));
    assert_eq!(run.attempts, [attempt(&first, Outcome::Failed)]);
    assert_eq!(
        run.attempts.first().map(|earlier| earlier.no),
        Some(AttemptNo(1))
    );
    Ok(())
}

pub async fn a_run_under_way_is_marked_by_its_holder_only(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    let ready = subject.ready(job.id).await?;
    let marks = [(held.id, at(62)), (ready.id, at(62))];
    store.mark_running(other.presence, &marks).await?;
    assert_eq!(subject.run(held.id).await?, held);
    store.mark_running(leases.presence, &marks).await?;
    let running = Run {
        state: RunState::Running,
        dispatched_at: Some(at(62)),
        ..held
    };
    assert_eq!(subject.run(running.id).await?, running);
    assert_eq!(subject.run(ready.id).await?, ready);
    let settled = subject
        .settle(settlement(&running, Verdict::Succeed))
        .await?;
    assert_eq!(settled, DONE);
    Ok(())
}

/// Its holder went on by the time it had read before the clock went back, and started the run by that.
pub async fn a_clock_that_went_back_unheard_leaves_no_claim_in_doubt(subject: Subject) -> Kept {
    let both = [subject.presence(), subject.other.presence];
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.pass(59, &both).await?;
    subject.clock.step_wall(-7_000);
    subject.fence_first().await?;
    let orphans = subject.store.orphans(&ShardSet::ALL, 9).await?;
    let ends: Vec<bool> = orphans
        .iter()
        .map(|orphan| orphan.ended_at >= run.due_at)
        .collect();
    assert_eq!(ends, [true], "{orphans:?}");
    Ok(())
}
