//! The audit log: every change is entered with the change itself, and the log is sealed and forgotten by whole segments.

use std::sync::Arc;

use model::target::HttpTarget;
use model::{
    AccessKey, CalendarName, Definition, Job, JobId, JobKey, JobState, KeyId, Role, Skip, Target,
    Tenant, TenantEdit, TenantId, TenantName, Version, limits,
};

use super::calendars::calendar;
use super::secrets::secret;
use super::subject::new;
use super::{Kept, Subject, at, job, job_with, once, someone};
use crate::{
    Acting, AuditEntry, AuditRange, BoxError, Created, Gap, JobChange, JobVersion, Keep, Page,
    RunsOfChange, StoreClock,
};

const OTHER: TenantId = TenantId(uuid::Uuid::from_u128(7));

pub(super) async fn entries(subject: &Subject) -> Result<Vec<AuditEntry>, BoxError> {
    Ok(subject.store.access().list_audit(&AuditRange::ALL).await?)
}

/// What was done to what, oldest first.
async fn actions(subject: &Subject) -> Result<Vec<String>, BoxError> {
    let entries = entries(subject).await?;
    Ok(entries.into_iter().map(|entry| entry.action).collect())
}

fn ann() -> Arc<Acting> {
    Arc::new(Acting {
        name: Arc::from("ann"),
        key: Some(KeyId::from_bytes([3; 16])),
        address: Some(Arc::from("192.0.2.1")),
        request: Some(Arc::from("req-1")),
    })
}

async fn change(subject: &Subject, before: &Arc<Job>, after: (Job, Vec<Skip>)) -> Kept {
    let change = JobChange {
        before: Arc::clone(before),
        after: Arc::new(after.0),
        skipped: after.1,
        runs: RunsOfChange::Keep,
    };
    subject.store.change_job(&change).await?;
    Ok(())
}

fn with_payload(job: &Job, payload: &'static [u8]) -> Definition {
    Definition {
        payload: Some(bytes::Bytes::from_static(payload)),
        ..Definition::clone(&job.def)
    }
}

pub async fn every_change_of_a_job_is_entered_once(subject: Subject) -> Kept {
    let made = subject.put(job(1)?).await?;
    let edit = made.edited(None, with_payload(&made, b"2"), at(1), &someone());
    change(&subject, &made, edit).await?;
    let edited = subject.job(made.id).await?;
    let paused = edited.paused(at(2), None, &someone());
    change(&subject, &edited, paused).await?;
    let paused = subject.job(made.id).await?;
    let resumed = paused.resumed(at(3), false, &someone());
    change(&subject, &paused, resumed).await?;
    let resumed = subject.job(made.id).await?;
    let deleted = resumed.deleted(at(4), &someone());
    change(&subject, &resumed, deleted).await?;
    let entries = entries(&subject).await?;
    let done: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    let all = [
        "job.create",
        "job.edit",
        "job.pause",
        "job.resume",
        "job.delete",
    ];
    assert_eq!(done, all);
    let subjects = entries.iter().map(|entry| entry.subject.as_str());
    assert!(subjects.into_iter().all(|it| it == made.id.to_string()));
    let edit = entries.get(1).ok_or("no edit")?;
    let (before, after) = (edit.before.as_deref(), edit.after.as_deref());
    assert!(
        before.is_some_and(|form| form.contains(r#""version":1"#)),
        "{edit:?}"
    );
    let digest = "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35";
    assert!(after.is_some_and(|form| form.contains(digest)), "{edit:?}");
    Ok(())
}

pub async fn what_changes_nothing_enters_nothing(subject: Subject) -> Kept {
    let keyed = Job {
        key: Some(JobKey::new("a")?),
        ..job(1)?
    };
    let made = subject.put(keyed.clone()).await?;
    let again = [
        new(&made),
        new(&Arc::new(Job {
            key: keyed.key,
            ..job(2)?
        })),
    ];
    subject.store.create_jobs(&again).await?;
    let stale = Arc::new(Job {
        version: Version(9),
        ..Job::clone(&made)
    });
    let edit = stale.edited(None, with_payload(&made, b"2"), at(1), &someone());
    change(&subject, &stale, edit).await?;
    assert_eq!(actions(&subject).await?, ["job.create"]);
    Ok(())
}

pub async fn a_batch_of_jobs_is_entered_job_by_job(subject: Subject) -> Kept {
    let mut jobs = Vec::new();
    for number in 1..=3 {
        jobs.push(new(&Arc::new(job(number)?)));
    }
    let created = subject.store.create_jobs(&jobs).await?;
    assert_eq!(created, vec![Created::Done; 3]);
    let entered = entries(&subject).await?.into_iter();
    let mut entered: Vec<String> = entered.map(|entry| entry.subject).collect();
    entered.sort();
    let made: Vec<String> = jobs.iter().map(|new| new.job.id.to_string()).collect();
    assert_eq!(entered, made);
    Ok(())
}

pub async fn an_entry_says_who_acted_and_no_secret(subject: Subject) -> Kept {
    let http = HttpTarget::new("https://example.com/", None)?
        .header("authorization", "Bearer planted")?
        .header("x-team", "ops")?;
    let secret = job_with(1, |def| def.target = Target::Http(http))?;
    ann().during(subject.put(secret)).await?;
    let entry = entries(&subject).await?.pop().ok_or("no entry")?;
    let who = (entry.actor.as_str(), entry.key, entry.address.as_deref());
    let ann = (("ann"), Some(KeyId::from_bytes([3; 16])), Some("192.0.2.1"));
    assert_eq!((who, entry.request.as_deref()), (ann, Some("req-1")));
    assert_eq!(entry.at, subject.clock.now());
    let after = entry.after.ok_or("nothing after")?;
    assert!(
        !after.contains("planted") && after.contains("ops"),
        "{after}"
    );
    assert!(
        serde_json::from_str::<serde_json::Value>(&after).is_ok(),
        "{after}"
    );
    Ok(())
}

pub async fn changes_of_calendars_keys_and_tenants_are_entered(subject: Subject) -> Kept {
    let (store, access) = (&subject.store, subject.store.access());
    let tenant = TenantId::DEFAULT;
    let name = CalendarName::new("free")?;
    store
        .put_calendar(tenant, &calendar("free", 1)?, None)
        .await?;
    let second = calendar("free", 2)?;
    store
        .put_calendar(tenant, &second, Some(Version(1)))
        .await?;
    store
        .put_calendar(tenant, &second, Some(Version(1)))
        .await?;
    store.drop_calendar(tenant, &name, None).await?;
    let other = Tenant::new(OTHER, TenantName::new("other")?, at(0));
    let why = TenantEdit {
        note: Some(Some("why".to_owned())),
        ..TenantEdit::default()
    };
    for _ in 0..2 {
        access.create_tenant(&other).await?;
        access.edit_tenant(OTHER, &why).await?;
    }
    let key = AccessKey {
        id: KeyId::from_bytes([1; 16]),
        tenant: OTHER,
        role: Role::Reader,
        label: None,
        digest: [1; 32],
        created_at: at(0),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        queues: Vec::new(),
    };
    for _ in 0..2 {
        access.create_key(&key).await?;
    }
    for _ in 0..2 {
        access.revoke_key(OTHER, key.id, at(1)).await?;
    }
    access.drop_tenant(OTHER, at(2)).await?;
    let expected = [
        "calendar.create",
        "calendar.edit",
        "calendar.delete",
        "tenant.create",
        "tenant.edit",
        "key.create",
        "key.revoke",
        "tenant.delete",
    ];
    assert_eq!(actions(&subject).await?, expected);
    Ok(())
}

pub async fn changes_of_secrets_are_entered_without_their_values(subject: Subject) -> Kept {
    let access = subject.store.access();
    let secret = secret(TenantId::DEFAULT, "token")?;
    for _ in 0..2 {
        access.put_secret(&secret, None).await?;
    }
    access.rewrap_secrets(std::slice::from_ref(&secret)).await?;
    for _ in 0..2 {
        access.drop_secret(TenantId::DEFAULT, &secret.name).await?;
    }
    let entries = entries(&subject).await?;
    let done: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(done, ["secret.put", "secret.rewrap", "secret.delete"]);
    let put = entries.first().and_then(|entry| entry.after.as_deref());
    assert_eq!(
        put,
        Some(r#"{"hosts":["*.example.com","[::1]"],"note":"für „ci“","version":1}"#)
    );
    Ok(())
}

pub async fn what_a_job_comes_to_by_itself_is_entered_for_the_system(subject: Subject) -> Kept {
    let bounded = job_with(1, |def| def.schedule.bounds.runs_max = Some(1))?;
    let bounded = ann().during(subject.put(bounded)).await?;
    subject.claimed(bounded.id).await?;
    let found = subject.store.get_job(TenantId::DEFAULT, bounded.id).await?;
    assert_eq!(found.map(|job| job.state), Some(JobState::Finished));
    let once = subject.put(once(2, 60)?).await?;
    subject.claimed(once.id).await?;
    let broken = subject.put(job(3)?).await?;
    let parked = [(broken.id, "unreadable".to_owned())];
    subject.store.park(&parked, at(1)).await?;
    subject.store.park(&parked, at(1)).await?;
    let entries = entries(&subject).await?;
    let done = entries
        .iter()
        .map(|it| (it.action.as_str(), it.actor.as_str()));
    let done: Vec<_> = done.filter(|(action, _)| *action != "job.create").collect();
    assert_eq!(done, [("job.finish", "system"), ("job.invalid", "system")]);
    Ok(())
}

pub async fn entries_are_read_in_both_directions_page_by_page(subject: Subject) -> Kept {
    for number in 1..=5 {
        subject.put(job(number)?).await?;
    }
    let all = entries(&subject).await?;
    let access = subject.store.access();
    let (mut forth, mut back) = (Vec::new(), Vec::new());
    let mut page = AuditRange {
        limit: 2,
        ..AuditRange::ALL
    };
    for _ in 0..4 {
        let found = access.list_audit(&page).await?;
        page.after = found.last().map_or(page.after, |entry| entry.seq);
        forth.extend(found);
    }
    let mut page = AuditRange {
        limit: 2,
        newest_first: true,
        tenant: Some(TenantId::DEFAULT),
        ..AuditRange::ALL
    };
    for _ in 0..4 {
        let found = access.list_audit(&page).await?;
        page.before = found.last().map_or(page.before, |entry| entry.seq);
        back.extend(found);
    }
    back.reverse();
    assert_eq!((all.len(), &forth, &back), (5, &all, &all));
    let seqs: Vec<u64> = all.iter().map(|entry| entry.seq).collect();
    let gaps: Vec<Gap> = seqs
        .iter()
        .skip(3)
        .map(|seq| Gap {
            first: *seq,
            last: *seq,
        })
        .collect();
    let found = access.find_audit(&gaps, 9).await?;
    assert_eq!(found.as_slice(), all.get(3..).unwrap_or_default());
    Ok(())
}

pub async fn a_tenant_is_shown_its_own_entries(subject: Subject) -> Kept {
    let theirs = Job {
        tenant: OTHER,
        ..job(1)?
    };
    subject.put(theirs.clone()).await?;
    subject.put(job(2)?).await?;
    let access = subject.store.access();
    for newest_first in [false, true] {
        let range = AuditRange {
            tenant: Some(OTHER),
            newest_first,
            ..AuditRange::ALL
        };
        let shown = access.list_audit(&range).await?;
        let shown: Vec<&str> = shown.iter().map(|entry| entry.subject.as_str()).collect();
        assert_eq!(shown, [theirs.id.to_string()]);
    }
    Ok(())
}

/// Changes a job's payload at a moment.
async fn edit(subject: &Subject, id: JobId, payload: String, secs: i64) -> Kept {
    let stands = subject.job(id).await?;
    let def = Definition {
        payload: Some(payload.into()),
        ..Definition::clone(&stands.def)
    };
    let edited = stands.edited(stands.key.clone(), def, at(secs), &someone());
    change(subject, &stands, edited).await
}

fn page(before: Option<u32>, limit: usize) -> Page<Version> {
    Page {
        before: before.map(Version),
        limit,
    }
}

fn numbers(versions: &[JobVersion]) -> Vec<u32> {
    versions.iter().map(|kept| kept.job.version.0).collect()
}

pub async fn each_change_of_a_definition_keeps_the_one_before(subject: Subject) -> Kept {
    let first = subject
        .put(job_with(1, |def| def.payload = Some("1".into()))?)
        .await?;
    let access = subject.store.access();
    assert_eq!(
        access
            .list_versions(first.tenant, first.id, page(None, 9))
            .await?,
        []
    );
    ann()
        .during(edit(&subject, first.id, "2".to_owned(), 1))
        .await?;
    let second = subject.job(first.id).await?;
    let paused = second.paused(at(2), None, &someone());
    change(&subject, &second, paused).await?;
    edit(&subject, first.id, "4".to_owned(), 3).await?;
    let kept = access
        .list_versions(first.tenant, first.id, page(None, 9))
        .await?;
    assert_eq!(numbers(&kept), [3, 1], "a pause changes no definition");
    let oldest = kept.last().ok_or("none is kept")?;
    assert_eq!((oldest.ended_at, oldest.ended_by.as_str()), (at(1), "ann"));
    assert_eq!((&oldest.job.def, &oldest.job.key), (&first.def, &first.key));
    let get = async |version| {
        let found = access
            .get_version(first.tenant, first.id, Version(version))
            .await?;
        let payload = found.and_then(|kept| kept.job.def.payload.clone());
        Ok::<_, BoxError>(payload)
    };
    assert_eq!(get(1).await?, Some("1".into()));
    assert_eq!(get(2).await?, Some("2".into()), "it stood elsewhere only");
    assert_eq!(get(3).await?, Some("2".into()));
    assert_eq!(get(4).await?, None, "it stands");
    let page = access
        .list_versions(first.tenant, first.id, page(Some(3), 9))
        .await?;
    assert_eq!(numbers(&page), [1]);
    Ok(())
}

pub async fn versions_are_their_tenants_and_go_with_their_job(subject: Subject) -> Kept {
    let made = subject.put(job(1)?).await?;
    edit(&subject, made.id, "2".to_owned(), 1).await?;
    let access = subject.store.access();
    assert_eq!(
        access.list_versions(OTHER, made.id, page(None, 9)).await?,
        []
    );
    assert_eq!(access.get_version(OTHER, made.id, Version(1)).await?, None);
    let stands = subject.job(made.id).await?;
    change(&subject, &stands, stands.deleted(at(2), &someone())).await?;
    assert_eq!(
        access.get_version(made.tenant, made.id, Version(1)).await?,
        None
    );
    let keep = Keep {
        now: at(3),
        history: std::time::Duration::from_secs(1),
        finished: std::time::Duration::from_secs(1),
    };
    while subject.store.retain(&keep).await?.more {}
    subject.put(job(1)?).await?;
    assert_eq!(
        access.get_version(made.tenant, made.id, Version(1)).await?,
        None
    );
    Ok(())
}

pub async fn so_many_versions_of_a_job_are_kept_and_no_more(subject: Subject) -> Kept {
    let made = subject.put(job(1)?).await?;
    let max = u32::try_from(limits::VERSIONS_MAX)?;
    for number in 1..=max + 2 {
        edit(&subject, made.id, number.to_string(), i64::from(number)).await?;
    }
    let access = subject.store.access();
    let all = access
        .list_versions(made.tenant, made.id, page(None, 1_000))
        .await?;
    let expected: Vec<u32> = (3..=max + 2).rev().collect();
    assert_eq!(numbers(&all), expected);
    Ok(())
}
