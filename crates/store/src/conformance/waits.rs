//! Waiting: a run that may not start yet for something outside of its job, and how it is woken.

use std::time::Duration;

use model::shard::ShardSet;
use model::{
    AttemptNo, Definition, Overlap, Reason, Run, RunState, Target, TenantId, Timestamp, Verdict,
    Wait, WaitReason,
};

use super::{DONE, Kept, Subject, at, job, job_with, settlement, slot, someone};
use crate::{BoxError, Cancelled, Claimed, DueRoom, Fired, Page, RunFilter, RunsOfChange, Woken};

const UNTIL: i64 = 180;

fn breaker() -> Wait {
    Wait::until(WaitReason::Breaker, at(UNTIL))
}

impl Subject {
    /// The job's next run, claimed and then made to wait.
    async fn waiting(&self, job: model::JobId) -> Result<Run, BoxError> {
        let run = self.claimed(job).await?;
        let settled = self
            .settle(settlement(&run, Verdict::Wait(breaker())))
            .await?;
        assert_eq!(settled, DONE);
        self.run(run.id).await
    }

    async fn count_due(&self, up_to: Timestamp) -> Result<usize, BoxError> {
        let due = self.store.due_runs(&ShardSet::ALL, up_to, None, 10).await?;
        Ok(due.len())
    }
}

pub async fn a_run_that_waits_has_no_holder_and_is_due_nowhere(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    store
        .mark_running(leases.presence, &[(held.id, at(60))])
        .await?;
    let settled = subject
        .settle(settlement(&held, Verdict::Wait(breaker())))
        .await?;
    assert_eq!(settled, DONE);
    let waits = Run {
        claim: None,
        wait: Some(breaker()),
        ..held
    };
    assert_eq!(subject.run(waits.id).await?, waits);
    assert_eq!(subject.count_due(at(9_999)).await?, 0);
    assert_eq!(store.due_of(&[job.id], at(100)).await?.runs, []);
    assert_eq!(subject.claim(leases, waits.id).await?, Claimed::Stale);
    let taken = store.claim_due(
        leases.presence,
        &ShardSet::ALL,
        DueRoom::for_earliest(at(9_999), [9; 3]),
    );
    assert_eq!(taken.await?, []);
    // The job's next slot is the oldest that is due.
    assert_eq!(
        store.oldest_due(&ShardSet::ALL, at(0), at(999)).await?,
        Some(at(120))
    );
    assert_eq!(store.claims(leases.presence, None, 10).await?, []);
    Ok(())
}

pub async fn a_run_is_woken_when_its_wait_is_over_and_keeps_its_number(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let retry = settlement(&run, Verdict::RetryAt(at(61)));
    subject.settle(retry).await?;
    let Claimed::Ours(run, _) = subject.claim(leases, run.id).await? else {
        return Err("the retry is nobody's".into());
    };
    subject
        .settle(settlement(&run, Verdict::Wait(breaker())))
        .await?;
    let waits = subject.run(run.id).await?;
    assert_eq!(
        (waits.state, waits.attempt),
        (RunState::Retrying, AttemptNo(2))
    );
    assert_eq!(waits.attempts, run.attempts);
    let early = at(UNTIL).minus(Duration::from_millis(1));
    assert_eq!(store.wake_due(&ShardSet::ALL, early, 10).await?, []);
    let others = ShardSet::ALL
        .iter()
        .filter(|shard| *shard != run.shard())
        .collect();
    assert_eq!(store.wake_due(&others, at(UNTIL), 10).await?, []);
    let woken = store.wake_due(&ShardSet::ALL, at(UNTIL), 10).await?;
    let woken: Vec<_> = woken
        .iter()
        .map(|due| (due.run, due.due_at, due.state))
        .collect();
    assert_eq!(woken, [(run.id, at(61), RunState::Retrying)]);
    assert_eq!(store.wake_due(&ShardSet::ALL, at(UNTIL), 10).await?, []);
    let stands = subject.run(run.id).await?;
    assert_eq!((stands.wait, stands.woken_at), (None, Some(at(UNTIL))));
    let Claimed::Ours(again, _) = subject.claim(leases, run.id).await? else {
        return Err("what was woken is nobody's".into());
    };
    assert_eq!((again.attempt, again.due_at), (AttemptNo(2), at(61)));
    assert_eq!(again.woken_at, Some(at(UNTIL)));
    Ok(())
}

pub async fn named_runs_are_woken_at_once_and_those_that_do_not_wait_stay(
    subject: Subject,
) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (subject.put(job(1)?).await?, subject.put(job(2)?).await?);
    let queued = subject
        .put(job_with(3, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    let waits = subject.waiting(first.id).await?;
    let held = subject.claimed(second.id).await?;
    subject.claimed(queued.id).await?;
    let Fired::Waiting(turn) = subject.fire(queued.id, true).await? else {
        return Err("it does not wait for its turn".into());
    };
    let counts = store.count_waiting().await?;
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [(WaitReason::Breaker, 1)]
    );
    let woken = store.wake(&[waits.id, held.id, turn], at(70)).await?;
    assert_eq!(
        woken.iter().map(|due| due.run).collect::<Vec<_>>(),
        [waits.id]
    );
    assert_eq!(subject.run(held.id).await?, held);
    assert!(subject.run(turn).await?.waits_for_turn());
    assert!(store.count_waiting().await?.is_empty());
    assert_eq!(subject.count_due(at(100)).await?, 1);
    Ok(())
}

pub async fn a_client_wakes_its_own_runs_and_learns_why_not(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    let waits = subject.waiting(job.id).await?;
    let Fired::Waiting(turn) = subject.fire(job.id, true).await? else {
        return Err("it does not wait for its turn".into());
    };
    let (ours, stranger) = (TenantId::DEFAULT, TenantId(uuid::Uuid::from_u128(7)));
    assert_eq!(
        store.wake_run(stranger, waits.id, at(70)).await?,
        Woken::Missing
    );
    let not = Woken::Not(RunState::Ready, Some(Wait::TURN));
    assert_eq!(store.wake_run(ours, turn, at(70)).await?, not);
    let awake = Run {
        wait: None,
        woken_at: Some(at(70)),
        ..waits.clone()
    };
    let woken = store.wake_run(ours, waits.id, at(70)).await?;
    assert_eq!(woken, Woken::Done(Box::new(awake.clone())));
    assert_eq!(subject.run(waits.id).await?, awake);
    let again = store.wake_run(ours, waits.id, at(71)).await?;
    assert_eq!(again, Woken::Not(RunState::Ready, None));
    store.cancel_run(ours, waits.id, at(72)).await?;
    let ended = store.wake_run(ours, waits.id, at(73)).await?;
    assert_eq!(ended, Woken::Not(RunState::Cancelled, None));
    assert_eq!(
        store.wake_run(stranger, waits.id, at(73)).await?,
        Woken::Missing
    );
    Ok(())
}

/// It holds its turn: what comes after it waits, or is skipped for it.
pub async fn a_run_that_waits_is_alive_to_overlap(subject: Subject) -> Kept {
    for (number, overlap) in [Overlap::Skip, Overlap::QueueOne, Overlap::CancelRunning]
        .into_iter()
        .enumerate()
    {
        let job = subject
            .put(job_with(number as u8 + 1, |def| def.overlap = overlap)?)
            .await?;
        let waits = subject.waiting(job.id).await?;
        let fired = subject.fire(job.id, true).await?;
        let next = model::RunId::for_slot(job.id, slot(120));
        let expected = match overlap {
            Overlap::Skip => Fired::Skipped(Reason::Overlap),
            Overlap::QueueOne => Fired::Waiting(next),
            Overlap::CancelRunning => Fired::Claimed(next),
            Overlap::QueueAll { .. } | Overlap::Allow => return Err("not among them".into()),
        };
        assert_eq!(fired, expected);
        let stands = subject.run(waits.id).await?;
        let replaced = (stands.state, stands.reason, stands.wait);
        match overlap {
            Overlap::CancelRunning => {
                assert_eq!(
                    replaced,
                    (RunState::Cancelled, Some(Reason::Replaced), None)
                );
            }
            Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll { .. } | Overlap::Allow => {
                assert_eq!(stands, waits);
            }
        }
    }
    Ok(())
}

pub async fn a_run_that_waits_is_cancelled_and_marks_that_it_had_are_followed(
    subject: Subject,
) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let waits = subject.waiting(job.id).await?;
    let cancelled = store
        .cancel_run(TenantId::DEFAULT, waits.id, at(70))
        .await?;
    let Cancelled::Done(ended) = cancelled else {
        return Err(format!("{cancelled:?}").into());
    };
    assert_eq!((ended.state, ended.wait), (RunState::Cancelled, None));
    assert_eq!(subject.run(waits.id).await?, *ended);
    let held = subject.claimed(job.id).await?;
    let cancelled = store
        .cancel_run(TenantId::DEFAULT, held.id, at(121))
        .await?;
    assert_eq!(cancelled, Cancelled::Marked);
    subject
        .settle(settlement(&held, Verdict::Wait(breaker())))
        .await?;
    assert_eq!(subject.run(held.id).await?.state, RunState::Cancelled);
    assert!(store.count_waiting().await?.is_empty());
    Ok(())
}

/// What it waits for is not where it goes any more.
pub async fn an_edit_of_the_target_wakes_and_any_other_does_not(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let waits = subject.waiting(job.id).await?;
    subject.clock.advance(Duration::from_secs(70));
    let stands = subject.job(job.id).await?;
    let slower = Definition {
        timeout: Duration::from_secs(7),
        ..Definition::clone(&stands.def)
    };
    let edited = stands.edited(None, slower, at(70), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    assert_eq!(subject.run(waits.id).await?, waits);
    let stands = subject.job(job.id).await?;
    let elsewhere = Definition {
        target: Target::http("http://elsewhere.example/")?,
        ..Definition::clone(&stands.def)
    };
    let edited = stands.edited(None, elsewhere, at(71), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    let woken = subject.run(waits.id).await?;
    assert_eq!((woken.wait, woken.woken_at), (None, Some(at(71))));
    Ok(())
}

pub async fn runs_are_listed_by_what_they_wait_for(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    let other = subject.put(super::job(2)?).await?;
    let waits = subject.waiting(job.id).await?;
    subject.fire(job.id, true).await?;
    subject.claimed(other.id).await?;
    let turn = subject
        .run(model::RunId::for_slot(job.id, slot(120)))
        .await?;
    let page = Page {
        before: None,
        limit: 10,
    };
    let all = [Some(job.id), None];
    for of in all {
        for (waiting, expected) in [
            (vec![WaitReason::Breaker], vec![&waits]),
            (vec![WaitReason::Turn], vec![&turn]),
            (WaitReason::ALL.to_vec(), vec![&turn, &waits]),
            (vec![WaitReason::Concurrency], vec![]),
        ] {
            let filter = RunFilter {
                job: of,
                waiting,
                ..RunFilter::default()
            };
            let listed = store.list_runs(TenantId::DEFAULT, &filter, page).await?;
            assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        }
    }
    Ok(())
}
