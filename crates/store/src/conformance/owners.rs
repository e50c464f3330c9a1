//! Whose jobs there are.

use std::sync::Arc;

use model::{Job, JobId, JobState, TenantId};

use super::{Kept, Subject, at, job_with, someone};
use crate::{BoxError, JobFilter, Page, RunsOfChange};

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
