//! Quotas: what a tenant has is counted with every write, and it gets no more than it may have.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{
    Job, JobState, Quota, QuotaExceeded, Tenant, TenantEdit, TenantId, TenantName, Usage, limits,
};

use super::{Kept, Subject, at, job_with, someone};
use crate::{AccessStore, Created, JobChange, JobChanged, Keep, NewJob, RunsOfChange};

const OURS: TenantId = TenantId(uuid::Uuid::from_u128(12));

fn usage(jobs: u64, payload_bytes: u64) -> Usage {
    Usage {
        jobs,
        payload_bytes,
    }
}

/// A job of our tenant, with a payload of so many bytes.
fn sized(number: u8, bytes: usize) -> Result<NewJob, crate::BoxError> {
    let mut job = job_with(number, |def| {
        def.payload = (bytes > 0).then(|| Bytes::from(vec![b'1'; bytes]));
    })?;
    job.tenant = OURS;
    Ok(NewJob {
        job: Arc::new(job),
        idempotency: None,
    })
}

fn said(quotas: &[(Quota, u64)]) -> TenantEdit {
    TenantEdit {
        quotas: quotas
            .iter()
            .map(|(quota, max)| (*quota, Some(*max)))
            .collect(),
        ..TenantEdit::default()
    }
}

async fn found(store: &dyn AccessStore, quotas: &[(Quota, u64)]) -> Kept {
    let tenant = Tenant::new(OURS, TenantName::new("ours")?, at(0));
    store.create_tenant(&tenant.edited(&said(quotas))).await?;
    Ok(())
}

fn exceeded(quota: Quota, limit: u64, used: u64) -> Created {
    Created::QuotaExceeded(QuotaExceeded { quota, limit, used })
}

fn with_payload(job: &Job, bytes: usize) -> JobChange {
    let mut def = (*job.def).clone();
    def.payload = (bytes > 0).then(|| Bytes::from(vec![b'2'; bytes]));
    let (after, skipped) = job.edited(job.key.clone(), def, at(1), &someone());
    JobChange {
        before: Arc::new(job.clone()),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::TakeBack,
    }
}

fn deletion(job: &Job) -> JobChange {
    let (after, skipped) = job.deleted(at(2), &someone());
    JobChange {
        before: Arc::new(job.clone()),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::Cancel,
    }
}

pub async fn a_tenant_gets_no_more_than_its_quota(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    found(
        store.access(),
        &[(Quota::Jobs, 3), (Quota::PayloadBytes, 100)],
    )
    .await?;
    let batch = [
        sized(1, 60)?,
        sized(2, 50)?,
        sized(3, 40)?,
        sized(4, 1)?,
        sized(5, 0)?,
        sized(6, 0)?,
    ];
    let answers = store.create_jobs(&batch).await?;
    assert_eq!(
        answers,
        [
            Created::Done,
            exceeded(Quota::PayloadBytes, 100, 60),
            Created::Done,
            exceeded(Quota::PayloadBytes, 100, 100),
            Created::Done,
            exceeded(Quota::Jobs, 3, 3),
        ]
    );
    let one = store.create_jobs(&batch[5..]).await?;
    assert_eq!(one, [exceeded(Quota::Jobs, 3, 3)]);
    assert_eq!(store.access().tenant_use(OURS).await?, usage(3, 100));
    // Another tenant is not concerned.
    let other = NewJob {
        job: Arc::new(job_with(7, |_| {})?),
        idempotency: None,
    };
    let mixed = store.create_jobs(&[batch[5].clone(), other]).await?;
    assert_eq!(mixed, [exceeded(Quota::Jobs, 3, 3), Created::Done]);
    assert_eq!(
        store.access().tenant_use(TenantId::DEFAULT).await?,
        usage(1, 0)
    );
    Ok(())
}

pub async fn a_tenant_over_its_quota_may_have_less(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    found(store.access(), &[]).await?;
    let made = [sized(1, 60)?, sized(2, 60)?];
    store.create_jobs(&made).await?;
    let low = said(&[(Quota::Jobs, 1), (Quota::PayloadBytes, 10)]);
    store.access().edit_tenant(OURS, &low).await?;
    let more = store.change_job(&with_payload(&made[0].job, 61)).await?;
    let limit = 10;
    let quota = Quota::PayloadBytes;
    let used = 120;
    assert_eq!(
        more,
        JobChanged::QuotaExceeded(QuotaExceeded { quota, limit, used })
    );
    let less = store.change_job(&with_payload(&made[0].job, 20)).await?;
    assert!(matches!(less, JobChanged::Done { .. }), "{less:?}");
    assert_eq!(store.access().tenant_use(OURS).await?, usage(2, 80));
    let gone = store.change_job(&deletion(&made[1].job)).await?;
    assert!(matches!(gone, JobChanged::Done { .. }), "{gone:?}");
    assert_eq!(store.access().tenant_use(OURS).await?, usage(1, 20));
    assert_eq!(
        store.create_jobs(&[sized(3, 0)?]).await?,
        [exceeded(Quota::Jobs, 1, 1)]
    );
    Ok(())
}

pub async fn what_a_tenant_uses_is_counted_with_every_write(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let access = store.access();
    assert_eq!(access.tenant_use(OURS).await?, usage(0, 0));
    found(access, &[]).await?;
    let large = limits::PAYLOAD_INLINE_MAX + 1;
    let mut over = Job::clone(&sized(3, 7)?.job);
    (over.state, over.next_slot) = (JobState::Finished, None);
    let over = NewJob {
        job: Arc::new(over),
        idempotency: None,
    };
    let made = [sized(1, 5)?, sized(2, large)?, over];
    store.create_jobs(&made).await?;
    let all = 12 + large as u64;
    assert_eq!(access.tenant_use(OURS).await?, usage(3, all));
    // Called again, nothing is counted twice.
    store.create_jobs(&made).await?;
    assert_eq!(access.tenant_use(OURS).await?, usage(3, all));
    store.change_job(&with_payload(&made[0].job, 9)).await?;
    assert_eq!(access.tenant_use(OURS).await?, usage(3, all + 4));
    store.change_job(&deletion(&made[1].job)).await?;
    assert_eq!(access.tenant_use(OURS).await?, usage(2, 16));
    // What is forgotten counts no more; what was deleted had been given back.
    let keep = Keep {
        now: at(3).plus(limits::HISTORY_KEEP),
        history: limits::HISTORY_KEEP,
        finished: Duration::ZERO,
    };
    while store.retain(&keep).await?.more {}
    assert_eq!(access.tenant_use(OURS).await?, usage(1, 9));
    Ok(())
}

pub async fn a_create_that_is_repeated_meets_no_quota(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    found(store.access(), &[(Quota::Jobs, 1)]).await?;
    let made = sized(1, 0)?;
    for answer in [Created::Done, Created::Repeated(made.job.id)] {
        assert_eq!(
            store.create_jobs(std::slice::from_ref(&made)).await?,
            [answer]
        );
    }
    assert_eq!(store.access().tenant_use(OURS).await?, usage(1, 0));
    Ok(())
}

pub async fn quotas_are_edited_one_by_one(subject: Subject) -> Kept {
    let store = subject.store.access();
    found(store, &[(Quota::Jobs, 3)]).await?;
    let quotas = async || -> Result<_, crate::BoxError> {
        let tenant = store.get_tenant(OURS).await?.ok_or("no tenant")?;
        Ok(tenant.quotas)
    };
    let stands = quotas().await?;
    assert_eq!((stands.jobs_max, stands.payload_bytes_max), (Some(3), None));
    let highest = Quota::PayloadBytes.highest();
    let bytes = said(&[(Quota::PayloadBytes, highest)]);
    let edited = store.edit_tenant(OURS, &bytes).await?.ok_or("no tenant")?;
    assert_eq!(edited.quotas, quotas().await?);
    assert_eq!(edited.quotas.payload_bytes_max, Some(highest));
    assert_eq!(edited.quotas.jobs_max, Some(3));
    let none = TenantEdit {
        note: Some(Some("noted".to_owned())),
        quotas: vec![(Quota::Jobs, None)],
    };
    let edited = store.edit_tenant(OURS, &none).await?.ok_or("no tenant")?;
    assert_eq!(edited.note.as_deref(), Some("noted"));
    assert_eq!(quotas().await?.jobs_max, None);
    let listed = store.list_tenants(None, 9).await?;
    assert!(listed.contains(&edited), "{listed:?}");
    Ok(())
}
