//! Tenants that are deleted with all that they have.

use std::sync::Arc;
use std::time::Duration;

use model::{
    AccessKey, CalendarName, Job, KeyId, Role, Run, RunId, RunKind, Tenant, TenantId, TenantName,
    Timestamp, Usage, Verdict, limits,
};

use super::{Kept, Subject, at, job_with, settlement, slot};
use crate::{
    AccessStore, Claimed, JobFilter, Keep, KeyCreated, NewJob, Page, StartRun, Store, TenantMarked,
    ValidKeys,
};

const OURS: TenantId = TenantId(uuid::Uuid::from_u128(12));

fn name() -> Result<TenantName, crate::BoxError> {
    Ok(TenantName::new("ours")?)
}

fn key(number: u8, role: Role) -> AccessKey {
    AccessKey {
        id: KeyId::from_bytes([number; 16]),
        tenant: OURS,
        role,
        label: None,
        digest: [number; 32],
        created_at: at(0),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        queues: Vec::new(),
    }
}

/// So many jobs of a tenant that is there with two keys.
async fn found(store: &dyn Store, jobs: u8) -> Result<Vec<Arc<Job>>, crate::BoxError> {
    let access = store.access();
    access
        .create_tenant(&Tenant::new(OURS, name()?, at(0)))
        .await?;
    for number in [1, 2] {
        access.create_key(&key(number, Role::Admin)).await?;
    }
    let mut made = Vec::new();
    for number in 1..=jobs {
        let mut job = job_with(number, |_| {})?;
        job.tenant = OURS;
        made.push(NewJob {
            job: Arc::new(job),
            idempotency: None,
        });
    }
    store.create_jobs(&made).await?;
    Ok(made.into_iter().map(|new| new.job).collect())
}

async fn retain(store: &dyn Store, now: Timestamp) -> Kept {
    let keep = Keep {
        now,
        history: limits::HISTORY_KEEP,
        finished: limits::HISTORY_KEEP,
    };
    for _ in 0..100 {
        if !store.retain(&keep).await?.more {
            return Ok(());
        }
    }
    Err("it does not come to an end".into())
}

async fn listed(store: &dyn Store) -> Result<usize, crate::BoxError> {
    let page = Page {
        before: None,
        limit: 1_000,
    };
    let filter = JobFilter::default();
    Ok(store.list_jobs(OURS, &filter, page).await?.len())
}

async fn delete(access: &dyn AccessStore) -> Result<Tenant, crate::BoxError> {
    match access
        .delete_tenant(OURS, at(10), ValidKeys::Revoke)
        .await?
    {
        TenantMarked::Done(tenant) => Ok(tenant),
        other @ (TenantMarked::Missing | TenantMarked::HasKeys | TenantMarked::LastRoot) => {
            Err(format!("{other:?}").into())
        }
    }
}

pub async fn a_tenant_that_is_deleted_opens_nothing(subject: Subject) -> Kept {
    let access = subject.store.access();
    let missing = access.delete_tenant(OURS, at(1), ValidKeys::Refuse).await?;
    assert_eq!(missing, TenantMarked::Missing);
    found(&*subject.store, 1).await?;
    let before = access.keys_since(0).await?.change;
    let refused = access.delete_tenant(OURS, at(9), ValidKeys::Refuse).await?;
    assert_eq!(refused, TenantMarked::HasKeys);
    assert_eq!(access.keys_since(0).await?.change, before);
    let marked = delete(access).await?;
    assert_eq!(marked.deleting_at, Some(at(10)));
    let again = access
        .delete_tenant(OURS, at(20), ValidKeys::Refuse)
        .await?;
    assert_eq!(again, TenantMarked::Done(marked.clone()));
    assert_eq!(access.find_tenant(&marked.name).await?, Some(marked));
    let changed = access.keys_since(before).await?;
    let revoked = changed
        .keys
        .iter()
        .filter(|key| key.revoked_at == Some(at(10)));
    assert_eq!(revoked.count(), 2);
    let more = access.create_key(&key(3, Role::Admin)).await?;
    assert_eq!(more, KeyCreated::NoTenant);
    // Whoever sees to the installation is not locked out of it.
    let store = subject.store.access();
    let other = TenantId(uuid::Uuid::from_u128(13));
    let tenant = Tenant::new(other, TenantName::new("roots")?, at(0));
    store.create_tenant(&tenant).await?;
    let root = AccessKey {
        tenant: other,
        ..key(4, Role::Root)
    };
    store.create_key(&root).await?;
    let last = store
        .delete_tenant(other, at(10), ValidKeys::Revoke)
        .await?;
    assert_eq!(last, TenantMarked::LastRoot);
    Ok(())
}

pub async fn a_tenant_goes_with_all_that_it_has(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (store, access) = (&**store, store.access());
    // More than one step deletes, and another tenant's job.
    let many = u8::try_from(limits::TENANT_SWEEP_MAX)? + 5;
    found(store, many).await?;
    let other = subject.put(job_with(200, |_| {})?).await?;
    let calendar = model::Calendar::new(CalendarName::new("holidays")?, at(0));
    store.put_calendar(OURS, &calendar, None).await?;
    delete(access).await?;
    retain(store, at(11)).await?;
    assert_eq!(listed(store).await?, 0);
    assert!(store.list_calendars(OURS, None, 9).await?.is_empty());
    assert_eq!(access.tenant_use(OURS).await?, Usage::default());
    // A request may still be under way: it goes when none can be.
    assert!(access.get_tenant(OURS).await?.is_some());
    let drained = at(10).plus(limits::TENANT_DRAIN);
    retain(store, drained.minus(Duration::from_millis(1))).await?;
    assert!(access.get_tenant(OURS).await?.is_some());
    retain(store, drained).await?;
    assert_eq!(access.get_tenant(OURS).await?, None);
    assert!(access.keys_since(0).await?.keys.is_empty());
    assert_eq!(subject.job(other.id).await?, other);
    Ok(())
}

pub async fn a_tenant_stays_while_a_run_of_it_lives(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let jobs = found(&**store, 2).await?;
    let run = Run {
        id: RunId::of_request(jobs[0].id, at(5), 1),
        kind: RunKind::Manual,
        slot: None,
        due_at: at(5),
        ..Run::of_slot(&jobs[0], slot(5))
    };
    let start = StartRun { run, force: false };
    store.start_run(&start).await?;
    let claimed = store.claim(leases, &[start.run.id]).await?.pop();
    let Some(Claimed::Ours(run, _)) = claimed else {
        return Err(format!("{claimed:?}").into());
    };
    delete(store.access()).await?;
    let late = at(10).plus(limits::TENANT_DRAIN);
    retain(&**store, late).await?;
    // The other has gone, and this one waits for whoever holds its run.
    assert_eq!(listed(&**store).await?, 0);
    assert!(store.access().get_tenant(OURS).await?.is_some());
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    retain(&**store, late).await?;
    assert_eq!(store.access().get_tenant(OURS).await?, None);
    Ok(())
}

pub async fn a_job_that_comes_late_goes_with_its_tenant(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    found(&**store, 1).await?;
    delete(store.access()).await?;
    retain(&**store, at(11)).await?;
    let mut late = job_with(50, |_| {})?;
    late.tenant = OURS;
    let late = NewJob {
        job: Arc::new(late),
        idempotency: None,
    };
    store.create_jobs(&[late]).await?;
    assert_eq!(listed(&**store).await?, 1);
    retain(&**store, at(10).plus(limits::TENANT_DRAIN)).await?;
    assert_eq!(listed(&**store).await?, 0);
    assert_eq!(store.access().get_tenant(OURS).await?, None);
    Ok(())
}
