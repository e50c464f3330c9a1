//! Completion: a job whose next slot is set by the end of its run rests while that run lives. Nothing but
//! that end wakes it, and every end does.

use std::sync::Arc;
use std::time::Duration;

use model::shard::ShardSet;
use model::{
    Definition, Job, JobId, JobState, Outcome, Overlap, Reason, Run, RunId, RunKind, Schedule,
    TenantId, Timestamp, Verdict, Version,
};

use super::{
    DONE, Kept, Subject, after_completion, at, attempt, job_with, settlement, slot, someone,
};
use crate::{
    BoxError, Cancelled, Fired, RunsOfChange, Settled, Settlement, StartRun, Started, Withdrawal,
};

/// Due a minute after the end of its last run; for the first time at second 60.
pub(super) fn resting(number: u8, overlap: Overlap) -> Result<Job, BoxError> {
    let schedule = after_completion(60)?;
    job_with(number, |def| {
        def.schedule = schedule;
        def.overlap = overlap;
    })
}

/// Settled, which wakes the job.
pub(super) fn woken(due_at: Timestamp) -> Settled {
    Settled::Done {
        freed: None,
        due_at: Some(due_at),
        paused: None,
    }
}

pub(super) fn by_hand(job: &Job, secs: i64) -> StartRun {
    let run = Run {
        id: RunId::of_request(job.id, at(secs), 1),
        kind: RunKind::Manual,
        slot: None,
        due_at: at(secs),
        ..Run::of_slot(job, slot(secs))
    };
    StartRun { run, force: false }
}

impl Subject {
    /// Neither planned nor finished nor anything else.
    pub(super) async fn rests(&self, id: JobId) -> Kept {
        let job = self.job(id).await?;
        assert_eq!((job.state, job.next_slot), (JobState::Active, None));
        let due = self.due(&ShardSet::ALL, Timestamp::MAX, 9).await?;
        assert!(due.iter().all(|job| job.id != id), "{due:?}");
        Ok(())
    }

    /// Planned for a moment, and ready to be fired then.
    pub(super) async fn wakes(&self, id: JobId, secs: i64) -> Kept {
        let job = self.job(id).await?;
        assert_eq!(
            (job.state, job.next_slot),
            (JobState::Active, Some(slot(secs)))
        );
        assert_eq!(self.due(&ShardSet::ALL, at(secs), 9).await?, [job]);
        let fired = self.fire(id, true).await?;
        let run = RunId::for_slot(id, slot(secs));
        assert_eq!(fired, Fired::Claimed(run));
        Ok(())
    }

    pub(super) async fn edit_to(
        &self,
        id: JobId,
        secs: i64,
        schedule: Schedule,
    ) -> Result<(Job, Vec<RunId>), BoxError> {
        let stands = self.job(id).await?;
        let def = Definition {
            schedule,
            ..Definition::clone(&stands.def)
        };
        let edited = stands.edited(None, def, at(secs), &someone());
        self.change(&stands, edited, RunsOfChange::TakeBack).await
    }
}

pub async fn a_job_rests_while_its_run_lives(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    assert_eq!(job.next_slot, Some(slot(60)));
    subject.claimed(job.id).await?;
    subject.rests(job.id).await?;
    let expected = Job {
        next_slot: None,
        slot_last: Some(at(60)),
        ..Job::clone(&job)
    };
    assert_eq!(*subject.job(job.id).await?, expected);
    assert_eq!(
        subject
            .store
            .oldest_due(&ShardSet::ALL, Timestamp::MIN, Timestamp::MAX)
            .await?,
        None
    );
    Ok(())
}

pub async fn every_verdict_that_ends_a_run_wakes_its_job(subject: Subject) -> Kept {
    let spread = Duration::from_secs(30);
    for (number, verdict) in [
        (1, Verdict::Succeed),
        (2, Verdict::Bury(Reason::AttemptsSpent)),
        (3, Verdict::Cancel(Reason::Requested)),
    ] {
        let mut job = resting(number, Overlap::Skip)?;
        Arc::make_mut(&mut job.def).spread = spread;
        let job = subject.put(job).await?;
        let run = subject.claimed(job.id).await?;
        subject.rests(job.id).await?;
        let ended_at = run.due_at.plus(Duration::from_secs(1));
        let next = model::Slot(ended_at.plus(Duration::from_secs(60)));
        let settled = subject.settle(settlement(&run, verdict)).await?;
        assert_eq!(settled, woken(job.due_at(next)), "{verdict:?}");
        let stands = subject.job(job.id).await?;
        assert_eq!((stands.next_slot, stands.version), (Some(next), Version(1)));
        assert_eq!(stands.state_at, job.state_at);
        assert_eq!(
            subject.settle(settlement(&run, verdict)).await?,
            Settled::Stale
        );
        assert_eq!(subject.job(job.id).await?, stands, "once only");
        subject.claimed(job.id).await?;
        subject.rests(job.id).await?;
    }
    Ok(())
}

pub async fn each_end_of_a_batch_wakes_its_own_job(subject: Subject) -> Kept {
    let plain = subject.put(super::job(1)?).await?;
    let first = subject.put(resting(2, Overlap::Skip)?).await?;
    let second = subject.put(resting(3, Overlap::Skip)?).await?;
    let mut batch = Vec::new();
    for (job, verdict) in [
        (&plain, Verdict::Succeed),
        (&first, Verdict::Succeed),
        (&second, Verdict::RetryAt(at(90))),
    ] {
        let run = subject.claimed(job.id).await?;
        batch.push(settlement(&run, verdict));
    }
    let settled = subject.store.settle(subject.presence(), &batch).await?;
    assert_eq!(settled, [DONE, woken(at(121)), DONE]);
    subject.rests(second.id).await?;
    Ok(())
}

pub async fn a_retry_wakes_nobody(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let first = subject.claimed(job.id).await?;
    for verdict in [Verdict::RetryAt(at(90)), Verdict::Release] {
        subject.claim(&subject.leases, first.id).await?;
        let run = subject.run(first.id).await?;
        assert_eq!(subject.settle(settlement(&run, verdict)).await?, DONE);
        subject.rests(job.id).await?;
    }
    subject.claim(&subject.leases, first.id).await?;
    let run = subject.run(first.id).await?;
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, woken(at(151)), "a minute after the second try");
    Ok(())
}

pub async fn a_run_that_nobody_holds_wakes_its_job_when_it_is_cancelled(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.ready(job.id).await?;
    subject.rests(job.id).await?;
    let cancelled = subject
        .store
        .cancel_run(TenantId::DEFAULT, run.id, at(75))
        .await?;
    assert!(matches!(cancelled, Cancelled::Done(_)), "{cancelled:?}");
    subject.wakes(job.id, 135).await
}

pub async fn a_held_run_wakes_its_job_when_its_holder_ends_it(subject: Subject) -> Kept {
    for (number, verdict, due_at) in [
        (1, Verdict::Cancel(Reason::Requested), at(121)),
        (2, Verdict::RetryAt(at(300)), at(121)),
        // No attempt says when it ended: the store's moment.
        (3, Verdict::Release, at(130)),
    ] {
        let job = subject.put(resting(number, Overlap::Skip)?).await?;
        let run = subject.claimed(job.id).await?;
        if number == 3 {
            subject.clock.advance(Duration::from_secs(70));
        }
        let cancelled = subject
            .store
            .cancel_run(TenantId::DEFAULT, run.id, at(61))
            .await?;
        assert_eq!(cancelled, Cancelled::Marked);
        subject.rests(job.id).await?;
        let settled = subject.settle(settlement(&run, verdict)).await?;
        assert_eq!(settled, woken(due_at), "{verdict:?}");
    }
    Ok(())
}

pub async fn a_lost_run_that_is_buried_wakes_its_job(subject: Subject) -> Kept {
    let jobs = [
        subject.put(resting(1, Overlap::Skip)?).await?,
        subject.put(resting(2, Overlap::Skip)?).await?,
    ];
    for job in &jobs {
        subject.claimed(job.id).await?;
    }
    subject.fence_first().await?;
    let verdicts = [Verdict::Bury(Reason::Lost), Verdict::RetryAt(at(90))];
    let mut settled = Vec::new();
    for (job, verdict) in jobs.iter().zip(verdicts) {
        let run = subject.run(RunId::for_slot(job.id, slot(60))).await?;
        let settlement = Settlement {
            attempt: Some(attempt(&run, Outcome::Lost)),
            ..settlement(&run, verdict)
        };
        let by = subject.other.presence;
        settled.extend(subject.store.settle(by, &[settlement]).await?);
    }
    assert_eq!(settled, [woken(at(121)), DONE]);
    assert_eq!(subject.job(jobs[0].id).await?.next_slot, Some(slot(121)));
    subject.rests(jobs[1].id).await
}

/// The ways a run is taken back: with the edit, by its holder's answer, by a holder that leaves.
pub async fn a_run_taken_back_leaves_its_slot_to_be_decided_again(subject: Subject) -> Kept {
    for (number, claim) in [(1, false), (2, true), (3, true)] {
        let job = subject.put(resting(number, Overlap::Skip)?).await?;
        subject.fire(job.id, claim).await?;
        let schedule = job.def.schedule.clone();
        let (edited, marked) = subject.edit_to(job.id, 58, schedule).await?;
        if claim {
            assert_eq!(edited.next_slot, None);
            subject.rests(job.id).await?;
        }
        for run in marked {
            let answers = [Withdrawal {
                run,
                taken_back: true,
            }];
            let by = subject.presence();
            if number == 2 {
                subject.store.withdraw(by, &answers, at(59)).await?;
            } else {
                let run = subject.run(run).await?;
                subject.settle(settlement(&run, Verdict::Release)).await?;
            }
        }
        subject.wakes(job.id, 60).await?;
        let gone = subject.job(job.id).await?.deleted(at(60), &someone());
        let stands = subject.job(job.id).await?;
        subject.change(&stands, gone, RunsOfChange::Cancel).await?;
    }
    Ok(())
}

pub async fn a_run_that_is_replaced_by_hand_wakes_its_job(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::CancelRunning)?).await?;
    subject.ready(job.id).await?;
    let start = by_hand(&job, 90);
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    let stands = subject.job(job.id).await?;
    assert_eq!(stands.next_slot, Some(slot(150)));
    assert_eq!(
        subject.due(&ShardSet::ALL, at(150), 9).await?,
        [stands],
        "it does not wait for a run by hand"
    );
    Ok(())
}

pub async fn a_held_run_that_is_replaced_wakes_its_job_at_its_end(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::CancelRunning)?).await?;
    let run = subject.claimed(job.id).await?;
    let start = by_hand(&job, 90);
    assert_eq!(subject.store.start_run(&start).await?, Started::Waiting);
    subject.rests(job.id).await?;
    let verdict = Verdict::Cancel(Reason::Replaced);
    let settled = subject.settle(settlement(&run, verdict)).await?;
    let both = Settled::Done {
        freed: Some(start.run.id),
        due_at: Some(at(121)),
        paused: None,
    };
    assert_eq!(settled, both);
    Ok(())
}

pub async fn the_end_of_a_run_by_hand_wakes_nobody(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Allow)?).await?;
    let run = subject.claimed(job.id).await?;
    let start = by_hand(&job, 70);
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    subject.claim(&subject.leases, start.run.id).await?;
    let manual = subject.run(start.run.id).await?;
    assert_eq!(
        subject
            .settle(settlement(&manual, Verdict::Succeed))
            .await?,
        DONE
    );
    subject.rests(job.id).await?;
    let another = StartRun {
        run: Run {
            id: RunId::of_request(job.id, at(80), 2),
            ..start.run
        },
        force: false,
    };
    assert_eq!(subject.store.start_run(&another).await?, Started::Ready);
    let cancelled = subject
        .store
        .cancel_run(TenantId::DEFAULT, another.run.id, at(81))
        .await?;
    assert!(matches!(cancelled, Cancelled::Done(_)), "{cancelled:?}");
    subject.rests(job.id).await?;
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, woken(at(121)));
    Ok(())
}

/// Overlap is for runs by hand then; what it skips is a slot like any other.
pub async fn a_slot_skipped_by_overlap_goes_on_from_the_slot(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let start = by_hand(&job, 30);
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    let id = start.run.id;
    subject.store.claim(&subject.leases, &[id]).await?;
    let fired = subject.fire(job.id, true).await?;
    assert_eq!(fired, Fired::Skipped(Reason::Overlap));
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.state, stands.next_slot),
        (JobState::Active, Some(slot(120)))
    );
    let run = subject.run(id).await?;
    let cancel = settlement(&run, Verdict::Cancel(Reason::Requested));
    subject.settle(cancel).await?;
    subject.wakes(job.id, 120).await
}
