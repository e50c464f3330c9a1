//! Retention: what is forgotten, when, and what never is.

use std::sync::Arc;
use std::time::Duration;

use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use model::{Job, JobId, JobKey, JobState, Reason, RunId, TenantId, Timestamp, Verdict};

use super::subject::new;
use super::{Kept, Subject, at, job, once, settlement, someone};
use crate::{
    BoxError, Created, Idempotency, JobFilter, Keep, NewJob, Page, Retained, RunsOfChange,
};

const DAY: i64 = 24 * 3_600;

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
            sum.ranges += step.ranges;
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

pub async fn history_is_dropped_by_whole_days(subject: Subject) -> Kept {
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
    assert!(retained.ranges >= 1, "{retained:?}");
    assert!(!subject.has(first).await? && !subject.has(last).await?);
    assert!(subject.has(next).await?);
    assert_eq!(subject.runs().await?.len(), 1);
    Ok(())
}

pub async fn retention_never_drops_a_range_of_a_live_run(subject: Subject) -> Kept {
    let old = subject.ran(1, MIDNIGHT + 1).await?;
    let job = subject.put(once(2, MIDNIGHT + DAY + 1)?).await?;
    let live = subject.claimed(job.id).await?;
    let beside = subject.ran(3, MIDNIGHT + DAY + 2).await?;
    let after = subject.ran(4, MIDNIGHT + 2 * DAY + 1).await?;
    subject.retain(at(100 * DAY)).await?;
    assert!(!subject.has(old).await?, "the day before it goes");
    assert!(subject.has(beside).await? && subject.has(after).await?);
    assert_eq!(subject.run(live.id).await?, live);
    subject
        .settle(settlement(&live, Verdict::Bury(Reason::Refused)))
        .await?;
    assert!(subject.has(live.id).await?);
    subject.retain(at(100 * DAY)).await?;
    assert_eq!(subject.runs().await?, []);
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
    let asked = |number: u8, digest: u8| -> Result<[NewJob; 1], BoxError> {
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
    assert_eq!(store.create_jobs(&asked(1, 1)?).await?, [Created::Done]);
    let day = at(0).plus(IDEMPOTENCY_KEEP);
    subject.retain(day.minus(Duration::from_millis(1))).await?;
    assert_eq!(store.create_jobs(&asked(2, 2)?).await?, [Created::Mismatch]);
    subject.retain(day).await?;
    assert_eq!(store.create_jobs(&asked(2, 2)?).await?, [Created::Done]);
    Ok(())
}

pub async fn what_was_skipped_stays_as_long_as_its_own_day(subject: Subject) -> Kept {
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
    let kept = MIDNIGHT + 12 * DAY;
    assert_eq!(of(0, kept).await?, 0, "older than a week");
    let left = of(kept, 20 * DAY + 60).await?;
    assert_eq!(left, ((20 * DAY - kept) / 60 + 1) as u64, "a week");
    Ok(())
}
