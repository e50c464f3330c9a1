//! Whose jobs there are, and which have a part of a key.

use std::sync::Arc;

use model::{Job, JobId, JobKey, JobState, TenantId};
use uuid::Uuid;

use super::subject::new;
use super::{Kept, Subject, at, job_with, someone};
use crate::{BoxError, Created, JobFilter, NewJob, Page, RunsOfChange};

const OTHER: TenantId = TenantId(Uuid::from_u128(7));

fn owned(number: u8, owner: Option<&str>, parity: u8) -> Result<Job, BoxError> {
    let mut job = job_with(number, |def| {
        def.labels.insert("parity".to_owned(), parity.to_string());
    })?;
    job.owner = owner.map(Arc::from);
    Ok(job)
}

fn of(owner: &str) -> JobFilter {
    JobFilter {
        owner: Some(owner.to_owned()),
        ..JobFilter::default()
    }
}

pub async fn jobs_are_listed_by_owner(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let ann = "Ann Ö.";
    let mut ids = Vec::new();
    for (number, owner, parity) in [
        (1, Some(ann), 0),
        (2, Some(ann), 1),
        (3, Some("Ann"), 0),
        (4, None, 0),
        (5, Some(ann), 0),
    ] {
        ids.push(subject.put(owned(number, owner, parity)?).await?.id);
    }
    let check =
        async |filter: JobFilter, page: (Option<JobId>, usize), expected: &[JobId]| -> Kept {
            let (before, limit) = page;
            let page = Page { before, limit };
            let jobs = store.list_jobs(TenantId::DEFAULT, &filter, page).await?;
            let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
            assert_eq!(ids, expected, "{filter:?} {page:?}");
            Ok(())
        };
    check(of(ann), (None, 10), &[ids[4], ids[1], ids[0]]).await?;
    check(of(ann), (None, 2), &[ids[4], ids[1]]).await?;
    check(of(ann), (Some(ids[1]), 2), &[ids[0]]).await?;
    check(of("Ann"), (None, 10), &[ids[2]]).await?;
    for nobody in ["", "ann", "Ann Ö", "Ann Ö.."] {
        check(of(nobody), (None, 10), &[]).await?;
    }
    let even = JobFilter {
        labels: vec![("parity".to_owned(), "0".to_owned())],
        ..of(ann)
    };
    check(even, (None, 10), &[ids[4], ids[0]]).await?;
    let paused = JobFilter {
        states: vec![JobState::Paused],
        ..of(ann)
    };
    check(paused, (None, 10), &[]).await?;
    let theirs = Page {
        before: None,
        limit: 10,
    };
    let stranger = TenantId::from_bytes([9; 16]);
    assert_eq!(store.list_jobs(stranger, &of(ann), theirs).await?, []);
    // One goes to another.
    let given = subject.job(ids[4]).await?;
    let (mut after, skips) = given.paused(at(1), None, &someone());
    after.owner = Some(Arc::from("Ann"));
    subject
        .change(&given, (after, skips), RunsOfChange::Keep)
        .await?;
    check(of(ann), (None, 10), &[ids[1], ids[0]]).await?;
    check(of("Ann"), (None, 10), &[ids[4], ids[2]]).await
}

/// More jobs without a key than are looked at before keys are, between some that have one.
const PLAIN: u8 = 20;

fn named(number: u8, tenant: TenantId, key: Option<&str>) -> Result<NewJob, BoxError> {
    let mut job = job_with(number, |_| {})?;
    job.tenant = tenant;
    job.key = key.map(JobKey::new).transpose()?;
    Ok(new(&Arc::new(job)))
}

pub async fn a_part_of_a_key_is_found_among_any_number_of_jobs_without_one(
    subject: Subject,
) -> Kept {
    let Subject { store, .. } = &subject;
    for (tenant, first) in [(TenantId::DEFAULT, 1), (OTHER, 101)] {
        let mut news = Vec::new();
        // The order of keys is not that of jobs.
        for (number, key) in [
            (0, "z-Report"),
            (1, "report-a"),
            (2, "other"),
            (3, "m-rePORt"),
        ] {
            news.push(named(first + number, tenant, Some(key))?);
        }
        for number in 0..PLAIN {
            news.push(named(first + 4 + number, tenant, None)?);
        }
        news.push(named(first + 4 + PLAIN, tenant, Some("a-report"))?);
        let made = store.create_jobs(&news).await?;
        assert!(made.iter().all(|it| *it == Created::Done), "{made:?}");
        let ids: Vec<JobId> = news.iter().map(|it| it.job.id).collect();
        let expected = [ids[4 + usize::from(PLAIN)], ids[3], ids[1], ids[0]];
        let (none, done) = (JobFilter::default(), vec![JobState::Finished]);
        let part = |q: &str, filter: &JobFilter| JobFilter {
            q: Some(q.to_owned()),
            ..filter.clone()
        };
        for limit in [1, 2, 3, 4, 10] {
            let mut before = None;
            let mut found = Vec::new();
            for _ in 0..=expected.len() {
                let page = Page { before, limit };
                let filter = part("repORT", &none);
                let jobs = store.list_jobs(tenant, &filter, page).await?;
                assert!(jobs.len() <= limit);
                found.extend(jobs.iter().map(|job| job.id));
                before = found.last().copied();
            }
            assert_eq!(found, expected, "by {limit}");
        }
        let page = Page {
            before: None,
            limit: 10,
        };
        let finished = JobFilter {
            states: done,
            ..none.clone()
        };
        for filter in [part("nothing", &none), part("report", &finished)] {
            assert_eq!(store.list_jobs(tenant, &filter, page).await?, []);
        }
        // One that is deleted has given its key up.
        let gone = Arc::clone(&news[1].job);
        let deleted = gone.deleted(at(1), &someone());
        subject.change(&gone, deleted, RunsOfChange::Keep).await?;
        let found = store
            .list_jobs(tenant, &part("report", &none), page)
            .await?;
        let found: Vec<JobId> = found.iter().map(|job| job.id).collect();
        assert_eq!(found, [expected[0], expected[1], expected[3]]);
    }
    Ok(())
}
