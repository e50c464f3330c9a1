//! Retention: what is forgotten, when, and what never is.

use std::sync::Arc;
use std::time::Duration;

use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use model::{Job, JobId, JobKey, JobState, Reason, Run, RunId, TenantId, Timestamp, Verdict};

use super::subject::new;
use super::{DONE, Kept, Subject, at, job, once, settlement, someone};
use crate::{
    BoxError, Created, Idempotency, JobFilter, Keep, NewJob, Page, Retained, RunsOfChange,
    Settlement,
};

const DAY: i64 = 24 * 3_600;
const HOUR: Duration = Duration::from_secs(3_600);

/// Seconds from the beginning of time to the midnight after it.
const MIDNIGHT: i64 = 6_400;

fn days(days: u64) -> Duration {
    Duration::from_secs(days * DAY as u64)
}

/// History of a week, finished jobs of two days.
fn keep(now: Timestamp) -> Keep {
    Keep {
        now,
        history: days(7),
        finished: days(2),
    }
}

impl Subject {
    /// Retains until nothing is left to do.
    async fn retain(&self, now: Timestamp) -> Result<Retained, BoxError> {
        let mut sum = Retained::default();
        loop {
            let step = self.store.retain(&keep(now)).await?;
            sum.partitions += step.partitions;
            sum.jobs += step.jobs;
            if !step.more {
                return Ok(sum);
            }
        }
    }

    /// A one-off that ran and succeeded.
    async fn ran(&self, number: u8, secs: i64) -> Result<RunId, BoxError> {
        let job = self.put(once(number, secs)?).await?;
        let run = self.claimed(job.id).await?;
        self.settle(settlement(&run, Verdict::Succeed)).await?;
        Ok(run.id)
    }

    async fn has(&self, run: RunId) -> Result<bool, BoxError> {
        Ok(self.store.get_run(TenantId::DEFAULT, run).await?.is_some())
    }
}

pub async fn history_is_dropped_by_whole_partitions(subject: Subject) -> Kept {
    assert_eq!(at(MIDNIGHT).as_millis() % (DAY * 1_000), 0);
    let first = subject.ran(1, MIDNIGHT).await?;
    let last = subject.ran(2, MIDNIGHT + DAY - 1).await?;
    let next = subject.ran(3, MIDNIGHT + DAY).await?;
    let week = 7 * DAY;
    let ends = at(MIDNIGHT + DAY + week);
    subject.retain(ends.minus(Duration::from_millis(1))).await?;
    assert!(
        subject.has(first).await? && subject.has(last).await?,
        "the day is not over yet"
    );
    let retained = subject.retain(ends).await?;
    assert!(retained.partitions >= 1, "{retained:?}");
    assert!(!subject.has(first).await? && !subject.has(last).await?);
    assert!(subject.has(next).await?);
    assert_eq!(subject.runs().await?.len(), 1);
    Ok(())
}

/// An attempt that ended at this moment, whenever it was due.
fn ended_at(run: &Run, secs: i64) -> Settlement {
    let mut end = settlement(run, Verdict::Bury(Reason::Refused));
    if let Some(attempt) = &mut end.attempt {
        attempt.settled_at = at(secs);
    }
    end
}

pub async fn a_run_that_lives_long_keeps_no_history(subject: Subject) -> Kept {
    let job = subject.put(once(1, MIDNIGHT + 1)?).await?;
    let live = subject.claimed(job.id).await?;
    let beside = subject.ran(2, MIDNIGHT + 2).await?;
    let after = subject.ran(3, MIDNIGHT + DAY + 1).await?;
    let now = MIDNIGHT + 100 * DAY;
    subject.retain(at(now)).await?;
    assert!(!subject.has(beside).await? && !subject.has(after).await?);
    assert_eq!(subject.run(live.id).await?, live);
    assert_eq!(subject.settle(ended_at(&live, now)).await?, DONE);
    subject.retain(at(now + 7 * DAY - 1)).await?;
    assert!(subject.has(live.id).await?, "its partition is made again");
    subject.retain(at(now + 7 * DAY)).await?;
    assert_eq!(subject.runs().await?, []);
    Ok(())
}

/// To the hour: what comes within one is noted once.
pub async fn a_straggler_keeps_its_partition(subject: Subject) -> Kept {
    let jobs = [once(1, MIDNIGHT + 1)?, once(2, MIDNIGHT + 2)?];
    let mut live = Vec::new();
    for job in jobs {
        let job = subject.put(job).await?;
        live.push(subject.claimed(job.id).await?);
    }
    let beside = subject.ran(3, MIDNIGHT + 3).await?;
    let next = subject.ran(4, MIDNIGHT + DAY + 1).await?;
    // The later one first: the partition is kept for both.
    let (first, second) = (MIDNIGHT + 5 * DAY, MIDNIGHT + 6 * DAY + 1);
    for (run, end) in live.iter().zip([second, first]) {
        assert_eq!(subject.settle(ended_at(run, end)).await?, DONE);
    }
    let hour = MIDNIGHT + 6 * DAY + 3_600;
    subject.retain(at(hour + 7 * DAY - 1)).await?;
    assert!(subject.has(beside).await?, "as long as the straggler");
    assert!(subject.has(live[0].id).await? && subject.has(live[1].id).await?);
    assert!(!subject.has(next).await?, "a later one had no straggler");
    subject.retain(at(hour + 7 * DAY)).await?;
    assert_eq!(subject.runs().await?, []);
    Ok(())
}

pub async fn opening_again_keeps_a_stragglers_partition(subject: Subject) -> Kept {
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    let job = subject.put(once(1, MIDNIGHT + 1)?).await?;
    let live = subject.claimed(job.id).await?;
    let end = MIDNIGHT + 5 * DAY;
    assert_eq!(subject.settle(ended_at(&live, end)).await?, DONE);
    let Subject {
        store,
        clock,
        guard,
        ..
    } = subject;
    let subject = Subject::over(reopen(store).await?, clock).await?;
    subject.retain(at(end + 7 * DAY - 1)).await?;
    assert!(subject.has(live.id).await?);
    subject.retain(at(end + 7 * DAY)).await?;
    assert!(!subject.has(live.id).await?);
    drop(guard);
    Ok(())
}

pub async fn a_finished_job_stays_as_long_as_it_should(subject: Subject) -> Kept {
    let run = subject.ran(1, 60).await?;
    let id = once(1, 60)?.id;
    let active = subject.put(job(2)?).await?;
    let paused = subject.put(job(3)?).await?;
    subject
        .change(
            &paused,
            paused.paused(at(1), None, &someone()),
            RunsOfChange::Keep,
        )
        .await?;
    subject.retain(at(60 + 2 * DAY - 1)).await?;
    assert_eq!(subject.job(id).await?.state, JobState::Finished);
    assert_eq!(subject.retain(at(60 + 2 * DAY)).await?.jobs, 1);
    assert_eq!(subject.store.get_job(TenantId::DEFAULT, id).await?, None);
    assert!(subject.has(run).await?, "what it did is still history");
    subject.retain(at(1_000 * DAY)).await?;
    assert_eq!(subject.job(active.id).await?, active);
    assert_eq!(subject.job(paused.id).await?.state, JobState::Paused);
    Ok(())
}

pub async fn a_deleted_job_stays_until_its_runs_have_ended(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    subject
        .change(
            &stands,
            stands.deleted(at(61), &someone()),
            RunsOfChange::Cancel,
        )
        .await?;
    let filter = JobFilter {
        states: vec![JobState::Deleted],
        ..JobFilter::default()
    };
    let page = Page {
        before: None,
        limit: 9,
    };
    assert_eq!(subject.retain(at(62)).await?.jobs, 0);
    assert_eq!(
        store
            .list_jobs(TenantId::DEFAULT, &filter, page)
            .await?
            .len(),
        1
    );
    subject
        .settle(settlement(&held, Verdict::Cancel(Reason::JobDeleted)))
        .await?;
    assert_eq!(subject.retain(at(62)).await?.jobs, 1);
    assert_eq!(store.list_jobs(TenantId::DEFAULT, &filter, page).await?, []);
    assert!(subject.has(held.id).await?);
    Ok(())
}

pub async fn a_job_removed_frees_its_key(subject: Subject) -> Kept {
    let key = Some(JobKey::new("a")?);
    let first = subject
        .put(Job {
            key: key.clone(),
            ..once(1, 60)?
        })
        .await?;
    let run = subject.claimed(first.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    let second = Arc::new(Job {
        key,
        ..once(2, 60)?
    });
    let taken = [Created::KeyTaken(first.id)];
    assert_eq!(subject.store.create_jobs(&[new(&second)]).await?, taken);
    subject.retain(at(60 + 2 * DAY)).await?;
    assert_eq!(
        subject.store.create_jobs(&[new(&second)]).await?,
        [Created::Done]
    );
    Ok(())
}

pub async fn retention_works_in_bounded_steps(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let mut batch = Vec::new();
    for number in 0..=RETENTION_BATCH_MAX as u64 {
        let mut chance = [0; 10];
        chance[2..].copy_from_slice(&number.to_be_bytes());
        let mut job = Job {
            id: JobId::new(at(0), chance),
            ..once(1, 60)?
        };
        (job.state, job.next_slot) = (JobState::Finished, None);
        batch.push(NewJob {
            job: Arc::new(job),
            idempotency: None,
        });
    }
    store.create_jobs(&batch).await?;
    let now = at(60 + 2 * DAY);
    let first = store.retain(&keep(now)).await?;
    assert_eq!(
        (first.jobs as usize, first.more),
        (RETENTION_BATCH_MAX, true)
    );
    let second = store.retain(&keep(now)).await?;
    assert_eq!((second.jobs, second.more), (1, false));
    Ok(())
}

pub async fn an_idempotency_key_is_forgotten_after_a_day(subject: Subject) -> Kept {
    let requested = |number: u8, digest: u8| -> Result<[NewJob; 1], BoxError> {
        let idempotency = Some(Idempotency {
            key: "request".to_owned(),
            digest: [digest; 32],
        });
        Ok([NewJob {
            job: Arc::new(job(number)?),
            idempotency,
        }])
    };
    let Subject { store, .. } = &subject;
    assert_eq!(store.create_jobs(&requested(1, 1)?).await?, [Created::Done]);
    let day = at(0).plus(IDEMPOTENCY_KEEP);
    subject.retain(day.minus(Duration::from_millis(1))).await?;
    assert_eq!(
        store.create_jobs(&requested(2, 2)?).await?,
        [Created::Mismatch]
    );
    subject.retain(day).await?;
    assert_eq!(store.create_jobs(&requested(2, 2)?).await?, [Created::Done]);
    Ok(())
}

pub async fn what_was_skipped_stays_from_when_it_was_written(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let stands = subject.job(job.id).await?;
    let paused = stands.paused(at(1), None, &someone());
    subject
        .change(&stands, paused, RunsOfChange::TakeBack)
        .await?;
    let now = at(20 * DAY);
    let stands = subject.job(job.id).await?;
    let resumed = stands.resumed(now, false, &someone());
    subject.change(&stands, resumed, RunsOfChange::Keep).await?;
    let of = async |from: i64, to: i64| {
        let store = &subject.store;
        let found = store.list_slots(TenantId::DEFAULT, job.id, at(from), at(to), 100);
        let counts = found.await?.into_iter().map(|run| run.stretch);
        let counts = counts.map(|it| it.map_or(1, |it| it.count));
        Ok::<u64, BoxError>(counts.sum())
    };
    let minutes = (20 * DAY / 60) as u64;
    assert_eq!(of(0, 20 * DAY + 60).await?, minutes);
    subject.retain(now).await?;
    let whole = of(0, 20 * DAY + 60).await?;
    assert_eq!(whole, minutes, "it was written just now");
    // `now` in full hours; the last of the partitions ends after it.
    subject.retain(now.plus(days(7) + HOUR)).await?;
    let last = MIDNIGHT + 19 * DAY;
    assert_eq!(of(0, last).await?, 0);
    let left = of(last, 20 * DAY + 60).await?;
    assert_eq!(left, ((20 * DAY - last) / 60 + 1) as u64);
    Ok(())
}
