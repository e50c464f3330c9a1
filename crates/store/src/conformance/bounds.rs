//! Bounds: how many runs are left is counted where runs are inserted, and nowhere else.

use std::sync::Arc;

use model::policy::CatchUpPolicy;
use model::schedule::Bounds;
use model::shard::ShardSet;
use model::{Definition, Job, JobState, Overlap, Reason, Run, RunId, RunKind, Schedule, Verdict};

use super::{DONE, Kept, Subject, at, every, firing, job_with, settlement, slot, someone};
use crate::{BoxError, Fired, RunsOfChange, StartRun, Started, Withdrawal};

/// Due every minute, for so many runs.
fn limited(number: u8, runs_max: u32, overlap: Overlap) -> Result<Job, BoxError> {
    job_with(number, |def| {
        def.schedule.bounds.runs_max = Some(runs_max);
        def.overlap = overlap;
        def.catch_up.policy = CatchUpPolicy::None;
    })
}

impl Subject {
    async fn runs_left(&self, job: &Job) -> Result<Option<u32>, BoxError> {
        Ok(self.job(job.id).await?.runs_left())
    }
}

pub async fn runs_left_counts_down_with_every_run_that_is_inserted(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 4, Overlap::QueueOne)?).await?;
    assert_eq!(subject.runs_left(&job).await?, Some(4));
    subject.claimed(job.id).await?;
    assert_eq!(subject.runs_left(&job).await?, Some(3));
    let waiting = subject.fire(job.id, true).await?;
    assert!(matches!(waiting, Fired::Waiting(_)), "{waiting:?}");
    assert_eq!(subject.runs_left(&job).await?, Some(2), "it was inserted");
    let unbounded = subject.put(super::job(2)?).await?;
    subject.claimed(unbounded.id).await?;
    assert_eq!(subject.runs_left(&unbounded).await?, None);
    Ok(())
}

pub async fn the_last_run_allowed_finishes_its_job(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 2, Overlap::Allow)?).await?;
    subject.claimed(job.id).await?;
    assert_eq!(subject.job(job.id).await?.state, JobState::Active);
    let planned = subject.job(job.id).await?;
    let last = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.state, stands.state_at, stands.next_slot),
        (JobState::Finished, at(120), None)
    );
    assert_eq!(
        (stands.runs_left(), stands.slot_last),
        (Some(0), Some(at(120)))
    );
    assert_eq!(subject.due(&ShardSet::ALL, at(99_999), 9).await?, []);
    let again = [firing(&planned, at(120))];
    let fired = subject.store.fire(&subject.leases, &again).await?;
    assert_eq!(fired, [Fired::Claimed(last.id)], "fired again");
    assert_eq!(subject.runs_left(&job).await?, Some(0));
    assert_eq!(
        subject.settle(settlement(&last, Verdict::Succeed)).await?,
        DONE
    );
    assert_eq!(*subject.job(job.id).await?, *stands);
    Ok(())
}

pub async fn a_repeated_fire_counts_once(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 4, Overlap::Allow)?).await?;
    let batch = [firing(&job, at(60))];
    for _ in 0..3 {
        subject.store.fire(&subject.leases, &batch).await?;
        assert_eq!(subject.runs_left(&job).await?, Some(3));
    }
    Ok(())
}

pub async fn a_slot_that_makes_no_run_does_not_count(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 2, Overlap::Skip)?).await?;
    let fired = subject
        .store
        .fire(&subject.leases, &[firing(&job, at(100))])
        .await?;
    assert_eq!(fired, [Fired::Skipped(Reason::Missed)]);
    assert_eq!(subject.runs_left(&job).await?, Some(2), "missed");
    let run = subject.claimed(job.id).await?;
    for _ in 0..3 {
        let fired = subject.fire(job.id, true).await?;
        assert_eq!(fired, Fired::Skipped(Reason::Overlap));
        assert_eq!(subject.runs_left(&job).await?, Some(1), "skipped");
    }
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    subject.claimed(job.id).await?;
    assert_eq!(subject.job(job.id).await?.state, JobState::Finished);
    Ok(())
}

pub async fn a_run_by_hand_does_not_count(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 1, Overlap::Allow)?).await?;
    let run = Run {
        id: RunId::of_request(job.id, at(5), 1),
        kind: RunKind::Manual,
        slot: None,
        ..Run::of_slot(&job, slot(5))
    };
    let start = StartRun { run, force: false };
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    assert_eq!(subject.job(job.id).await?.runs_made, 0);
    subject.claimed(job.id).await?;
    let another = Run {
        id: RunId::of_request(job.id, at(70), 2),
        ..start.run
    };
    let start = StartRun {
        run: another,
        force: false,
    };
    let started = subject.store.start_run(&start).await?;
    assert_eq!(started, Started::Ready, "nor is it bounded");
    Ok(())
}

/// The ways a run is taken back: with the edit, by its holder's answer, by a holder that leaves.
pub async fn a_run_taken_back_counts_again(subject: Subject) -> Kept {
    for (number, claim) in [(1, false), (2, true), (3, true)] {
        let job = subject.put(limited(number, 1, Overlap::Allow)?).await?;
        subject.fire(job.id, claim).await?;
        let stands = subject.job(job.id).await?;
        assert_eq!(
            (stands.state, stands.runs_left()),
            (JobState::Finished, Some(0))
        );
        let def = Definition::clone(&job.def);
        let edited = stands.edited(None, def, at(58), &someone());
        let (_, marked) = subject
            .change(&stands, edited, RunsOfChange::TakeBack)
            .await?;
        assert_eq!(marked.len(), usize::from(claim));
        for run in marked {
            let taken_back = Withdrawal {
                run,
                taken_back: true,
            };
            if number == 2 {
                let answers = [taken_back];
                let by = subject.presence();
                subject.store.withdraw(by, &answers, at(59)).await?;
            } else {
                let run = subject.run(run).await?;
                subject.settle(settlement(&run, Verdict::Release)).await?;
            }
        }
        let stands = subject.job(job.id).await?;
        assert_eq!(
            (stands.state, stands.runs_left(), stands.next_slot),
            (JobState::Active, Some(1), Some(slot(60)))
        );
        assert_eq!(subject.due(&ShardSet::ALL, at(60), 9).await?, [stands]);
        subject.claimed(job.id).await?;
        assert_eq!(subject.job(job.id).await?.state, JobState::Finished);
    }
    Ok(())
}

pub async fn a_slot_that_was_decided_before_counts_once(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 3, Overlap::Allow)?).await?;
    subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let astray = Job {
        next_slot: job.next_slot,
        slot_last: None,
        version: stands.version.next(),
        ..Job::clone(&stands)
    };
    let (astray, _) = subject
        .change(&stands, (astray, Vec::new()), RunsOfChange::Keep)
        .await?;
    let batch = [firing(&Arc::new(astray), at(60))];
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, [Fired::Decided]);
    assert_eq!(subject.runs_left(&job).await?, Some(2));
    Ok(())
}

pub async fn an_edit_counts_the_runs_that_were_made(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 3, Overlap::Allow)?).await?;
    for _ in 0..2 {
        subject.claimed(job.id).await?;
    }
    for (runs_max, left, state) in [
        (5, 3, JobState::Active),
        (2, 0, JobState::Finished),
        (3, 1, JobState::Active),
    ] {
        let stands = subject.job(job.id).await?;
        let mut def = Definition::clone(&job.def);
        def.schedule.bounds.runs_max = Some(runs_max);
        let edited = stands.edited(None, def, at(130), &someone());
        subject
            .change(&stands, edited, RunsOfChange::TakeBack)
            .await?;
        let stands = subject.job(job.id).await?;
        assert_eq!((stands.runs_left(), stands.state), (Some(left), state));
    }
    Ok(())
}

pub async fn a_slot_at_the_very_end_is_the_last(subject: Subject) -> Kept {
    let bounds = Bounds {
        starts_at: Some(at(180)),
        ends_at: Some(at(240)),
        runs_max: None,
    };
    let schedule = Schedule {
        bounds,
        ..every(60)?
    };
    let job = subject
        .put(job_with(1, |def| def.schedule = schedule)?)
        .await?;
    assert_eq!(subject.job(job.id).await?.def.schedule.bounds, bounds);
    assert_eq!(subject.due(&ShardSet::ALL, at(179), 9).await?, []);
    let first = subject.claimed(job.id).await?;
    let last = subject.claimed(job.id).await?;
    assert_eq!((first.slot, last.slot), (Some(slot(180)), Some(slot(240))));
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.state, stands.state_at, stands.next_slot),
        (JobState::Finished, at(240), None)
    );
    Ok(())
}

pub async fn runs_made_are_remembered_under_a_lower_bound(subject: Subject) -> Kept {
    let job = subject.put(limited(1, 4, Overlap::Skip)?).await?;
    for _ in 0..3 {
        let run = subject.claimed(job.id).await?;
        subject.settle(settlement(&run, Verdict::Succeed)).await?;
    }
    for (max, left, state) in [(1, 0, JobState::Finished), (5, 2, JobState::Active)] {
        let stands = subject.job(job.id).await?;
        let mut def = Definition::clone(&stands.def);
        def.schedule.bounds.runs_max = Some(max);
        let edited = stands.edited(None, def, at(200), &someone());
        subject
            .change(&stands, edited, RunsOfChange::TakeBack)
            .await?;
        let stands = subject.job(job.id).await?;
        assert_eq!((stands.runs_left(), stands.state), (Some(left), state));
    }
    Ok(())
}
