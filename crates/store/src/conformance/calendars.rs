//! Calendars: written over the version that was read, dropped when no job names them, and read by jobs as
//! they stand.

use std::slice::from_ref;
use std::sync::Arc;

use model::limits::CALENDARS_MAX;
use model::schedule::{Calendars, DateRange, Day, Weekly, Yearly, Zone};
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Definition, Job, JobKey, Reason, Run, RunId, Skip, TenantId, Version,
};

use super::subject::new;
use super::{Kept, Subject, at, firing, job, job_with, skip, slot, someone};
use crate::{
    BoxError, CalendarDropped, CalendarPut, CalendarUse, Claimed, Created, Fired, JobFilter, Page,
    RunsOfChange,
};

const OURS: TenantId = TenantId::DEFAULT;
const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

pub(super) fn named(name: &str) -> Result<CalendarName, BoxError> {
    Ok(CalendarName::new(name)?)
}

/// A calendar of some version, which holds the first minutes of every week's beginning of time.
pub(super) fn calendar(name: &str, version: u32) -> Result<Calendar, BoxError> {
    Ok(Calendar {
        version: Version(version),
        // Up to and without second 400.
        weekly: vec![Weekly::parse("TUE 22:00-22:20")?],
        ..Calendar::new(named(name)?, at(i64::from(version)))
    })
}

/// Everything that a calendar can say.
fn elaborate(name: &str) -> Result<Calendar, BoxError> {
    Ok(Calendar {
        note: Some("it's \"ö\"".to_owned()),
        zone: Some(Zone::get("Europe/Berlin")?),
        dates: vec![Day::parse("2026-12-25")?, Day::parse("2024-02-29")?],
        yearly: vec![Yearly::parse("12-25")?, Yearly::parse("02-29")?],
        weekly: vec![Weekly::parse("SAT-SUN")?, Weekly::parse("FRI 17:00-09:00")?],
        ranges: vec![
            DateRange::parse("2026-12-24/2027-01-02")?,
            DateRange::parse("2026-12-24T18:00/2026-12-27T06:00")?,
        ],
        ..calendar(name, 1)?
    })
}

/// A job that leaves out what these calendars hold.
pub(super) fn job_without(number: u8, calendars: &[&Calendar]) -> Result<Job, BoxError> {
    let exclude = calendars.iter().map(|it| Arc::new(Calendar::clone(it)));
    job_with(number, |def| {
        def.schedule.calendars.exclude = exclude.collect();
    })
}

impl Subject {
    /// Writes a calendar that nothing stands against.
    pub(super) async fn put_calendar(&self, calendar: &Calendar) -> Kept {
        let before = Some(Version(calendar.version.0 - 1)).filter(|it| it.0 > 0);
        let put = self.store.put_calendar(OURS, calendar, before).await?;
        assert_eq!(put, CalendarPut::Done);
        Ok(())
    }

    pub(super) async fn calendar(&self, name: &str) -> Result<Option<CalendarUse>, BoxError> {
        let mut found = self.store.get_calendars(OURS, &[named(name)?]).await?;
        Ok(found.pop().ok_or("a calendar without an answer")?)
    }

    pub(super) async fn deletes(&self, job: &Job) -> Kept {
        let stands = self.job(job.id).await?;
        let gone = stands.deleted(at(1), &someone());
        self.change(&stands, gone, RunsOfChange::Cancel).await?;
        Ok(())
    }

    /// Edits a job so that it names these calendars, and no others.
    pub(super) async fn goes_by(&self, job: &Job, exclude: Vec<Arc<Calendar>>) -> Kept {
        let stands = self.job(job.id).await?;
        let mut def = Definition::clone(&stands.def);
        def.schedule.calendars = Calendars {
            exclude,
            only: Vec::new(),
        };
        let edited = stands.edited(stands.key.clone(), def, at(1), &someone());
        self.change(&stands, edited, RunsOfChange::TakeBack).await?;
        Ok(())
    }
}

fn used(calendar: &Calendar, jobs: u64) -> CalendarUse {
    CalendarUse {
        calendar: Arc::new(calendar.clone()),
        jobs,
        applied: true,
    }
}

pub async fn a_calendar_reads_back_whole(subject: Subject) -> Kept {
    let whole = elaborate("a.b_c-1")?;
    subject.put_calendar(&whole).await?;
    assert_eq!(subject.calendar("a.b_c-1").await?, Some(used(&whole, 0)));
    let listed = subject.store.list_calendars(OURS, None, 9).await?;
    assert_eq!(listed, [used(&whole, 0)]);
    let job = subject.put(job_without(1, &[&whole])?).await?;
    assert_eq!(subject.job(job.id).await?, job);
    let changed = Calendar {
        version: Version(2),
        updated_at: at(77),
        ..calendar("a.b_c-1", 2)?
    };
    subject.put_calendar(&changed).await?;
    let stands = subject.calendar("a.b_c-1").await?;
    assert_eq!(
        stands.map(|it| it.calendar),
        Some(Arc::new(changed)),
        "nothing of the old one is left"
    );
    Ok(())
}

pub async fn a_calendar_is_written_over_the_version_named(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let put = async |calendar: &Calendar, before: Option<u32>| {
        store
            .put_calendar(OURS, calendar, before.map(Version))
            .await
    };
    let first = calendar("a", 1)?;
    let stands = |it: &Calendar| CalendarPut::Conflict(Some(Arc::new(it.clone())));
    assert_eq!(
        put(&calendar("a", 2)?, Some(1)).await?,
        CalendarPut::Conflict(None)
    );
    assert_eq!(subject.calendar("a").await?, None);
    assert_eq!(put(&first, None).await?, CalendarPut::Done);
    let second = Calendar {
        note: Some("changed".to_owned()),
        ..calendar("a", 2)?
    };
    assert_eq!(put(&second, None).await?, stands(&first), "it exists");
    assert_eq!(put(&second, Some(2)).await?, stands(&first));
    assert_eq!(subject.calendar("a").await?, Some(used(&first, 0)));
    assert_eq!(put(&second, Some(1)).await?, CalendarPut::Done);
    assert_eq!(put(&first, Some(1)).await?, stands(&second), "too late");
    let found = subject.calendar("a").await?;
    assert_eq!(found.map(|it| it.calendar), Some(Arc::new(second)));
    Ok(())
}

pub async fn calendars_come_in_the_order_requested(subject: Subject) -> Kept {
    let (a, b) = (calendar("a", 1)?, calendar("b", 1)?);
    subject.put_calendar(&a).await?;
    subject.put_calendar(&b).await?;
    let names = [named("b")?, named("c")?, named("a")?, named("b")?];
    let found = subject.store.get_calendars(OURS, &names).await?;
    let (a, b) = (used(&a, 0), used(&b, 0));
    assert_eq!(found, [Some(b.clone()), None, Some(a), Some(b)]);
    assert_eq!(subject.store.get_calendars(OURS, &[]).await?, []);
    assert_eq!(subject.calendar("A").await?, None, "names are exact");
    Ok(())
}

pub async fn calendars_are_listed_by_name(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    for name in ["b", "B", "a.1", "a", "_", "c-1", "a-1"] {
        subject.put_calendar(&calendar(name, 1)?).await?;
    }
    let whole = store.list_calendars(OURS, None, 100).await?;
    let names: Vec<_> = whole.iter().map(|it| it.calendar.name.as_str()).collect();
    assert_eq!(
        names,
        ["B", "_", "a", "a-1", "a.1", "b", "c-1"],
        "by their bytes"
    );
    for limit in 1..=8 {
        let mut paged: Vec<CalendarUse> = Vec::new();
        loop {
            let after = paged.last().map(|it| it.calendar.name.clone());
            let page = store.list_calendars(OURS, after.as_ref(), limit).await?;
            assert!(page.len() <= limit);
            let Some(first) = page.first() else { break };
            assert!(Some(&first.calendar.name) > after.as_ref());
            paged.extend(page);
        }
        assert_eq!(paged, whole, "{limit}");
    }
    let after = named("b.0")?;
    let rest = store.list_calendars(OURS, Some(&after), 9).await?;
    assert_eq!(rest.len(), 1, "what is named need not be there");
    Ok(())
}

pub async fn a_tenant_has_its_own_calendars(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let ours = calendar("a", 1)?;
    let theirs = elaborate("a")?;
    subject.put_calendar(&ours).await?;
    assert_eq!(store.get_calendars(STRANGER, &[named("a")?]).await?, [None]);
    assert_eq!(store.list_calendars(STRANGER, None, 9).await?, []);
    let dropped = store.drop_calendar(STRANGER, &named("a")?, None).await?;
    assert_eq!(dropped, CalendarDropped::Missing);
    let put = store.put_calendar(STRANGER, &theirs, None).await?;
    assert_eq!(put, CalendarPut::Done);
    let mine = subject.put(job_without(1, &[&ours])?).await?;
    let strange = Arc::new(Job {
        tenant: STRANGER,
        ..job_without(2, &[&theirs])?
    });
    assert_eq!(store.create_jobs(&[new(&strange)]).await?, [Created::Done]);
    assert_eq!(subject.job(mine.id).await?, mine);
    let read = store.get_job(STRANGER, strange.id).await?;
    assert_eq!(read.as_ref(), Some(&*strange));
    assert_eq!(subject.calendar("a").await?, Some(used(&ours, 1)));
    let changed = calendar("a", 2)?;
    let put = store
        .put_calendar(STRANGER, &changed, Some(Version(1)))
        .await?;
    assert_eq!(put, CalendarPut::Done);
    assert_eq!(subject.job(mine.id).await?, mine, "ours has not changed");
    subject.deletes(&mine).await?;
    let dropped = store.drop_calendar(OURS, &named("a")?, None).await?;
    assert_eq!(dropped, CalendarDropped::Done, "theirs is another");
    let listed = store.list_calendars(STRANGER, None, 9).await?;
    let listed: Vec<_> = listed.iter().map(|it| (&*it.calendar, it.jobs)).collect();
    assert_eq!(listed, [(&changed, 1)]);
    Ok(())
}

pub async fn a_calendar_counts_the_jobs_that_name_it(subject: Subject) -> Kept {
    let (a, b) = (calendar("a", 1)?, calendar("b", 1)?);
    subject.put_calendar(&a).await?;
    subject.put_calendar(&b).await?;
    let count = async |name: &str| -> Result<Option<u64>, BoxError> {
        Ok(subject.calendar(name).await?.map(|it| it.jobs))
    };
    subject.put(job(1)?).await?;
    let excluding = subject.put(job_without(2, &[&a])?).await?;
    let shared = Arc::new(a.clone());
    let both = subject
        .put(job_with(3, |def| {
            def.schedule.calendars = Calendars {
                exclude: vec![shared.clone()],
                only: vec![shared.clone(), Arc::new(b.clone())],
            };
        })?)
        .await?;
    assert_eq!((count("a").await?, count("b").await?), (Some(2), Some(1)));
    let listed = subject.store.list_calendars(OURS, None, 9).await?;
    assert_eq!(listed, [used(&a, 2), used(&b, 1)]);
    let stands = subject.job(both.id).await?;
    let paused = stands.paused(at(1), None, &someone());
    subject.change(&stands, paused, RunsOfChange::Keep).await?;
    assert_eq!(count("a").await?, Some(2), "paused, and still under it");
    subject.goes_by(&excluding, vec![Arc::new(b)]).await?;
    assert_eq!((count("a").await?, count("b").await?), (Some(1), Some(2)));
    subject.deletes(&both).await?;
    assert_eq!((count("a").await?, count("b").await?), (Some(0), Some(1)));
    Ok(())
}

/// Called at once, so that a store that commits in groups can.
pub async fn a_tenant_has_so_many_calendars_and_no_more(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let mut puts = tokio::task::JoinSet::new();
    for number in 0..CALENDARS_MAX {
        let (store, calendar) = (store.clone(), calendar(&format!("c{number}"), 1)?);
        puts.spawn(async move { store.put_calendar(OURS, &calendar, None).await });
    }
    while let Some(put) = puts.join_next().await {
        assert_eq!(put??, CalendarPut::Done);
    }
    let more = calendar("more", 1)?;
    let put = store.put_calendar(OURS, &more, None).await?;
    assert_eq!(put, CalendarPut::Full);
    assert_eq!(subject.calendar("more").await?, None);
    subject.put_calendar(&calendar("c7", 2)?).await?;
    let put = store.put_calendar(STRANGER, &more, None).await?;
    assert_eq!(put, CalendarPut::Done, "each tenant for itself");
    store.drop_calendar(OURS, &named("c7")?, None).await?;
    subject.put_calendar(&more).await?;
    Ok(())
}

pub async fn a_calendar_in_use_is_not_dropped(subject: Subject) -> Kept {
    let a = calendar("a", 1)?;
    subject.put_calendar(&a).await?;
    let mut users = Vec::new();
    for number in 1..=7 {
        users.push(subject.put(job_without(number, &[&a])?).await?.id);
    }
    let dropped = subject.store.drop_calendar(OURS, &a.name, None).await?;
    let CalendarDropped::InUse(some, count) = dropped else {
        return Err(format!("{dropped:?}").into());
    };
    assert_eq!(count, 7);
    assert_eq!(some, users[..5], "a few of them");
    assert_eq!(subject.calendar("a").await?, Some(used(&a, 7)));
    Ok(())
}

pub async fn a_calendar_that_no_job_names_any_more_can_be_dropped(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let a = calendar("a", 1)?;
    subject.put_calendar(&a).await?;
    let deleted = subject.put(job_without(1, &[&a])?).await?;
    let edited = subject.put(job_without(2, &[&a])?).await?;
    let drop = async || store.drop_calendar(OURS, &a.name, Some(Version(1))).await;
    let in_use = |by: &Job, count| CalendarDropped::InUse(vec![by.id], count);
    subject.deletes(&deleted).await?;
    assert_eq!(drop().await?, in_use(&edited, 1));
    subject.goes_by(&edited, Vec::new()).await?;
    assert_eq!(drop().await?, CalendarDropped::Done);
    assert_eq!(drop().await?, CalendarDropped::Missing);
    assert_eq!(subject.calendar("a").await?, None);
    assert_eq!(subject.job(edited.id).await?.def, job(2)?.def);
    subject.put_calendar(&a).await?;
    assert_eq!(subject.calendar("a").await?, Some(used(&a, 0)), "again");
    Ok(())
}

pub async fn a_calendar_is_dropped_at_the_version_named(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let name = named("a")?;
    subject.put_calendar(&calendar("a", 1)?).await?;
    let second = calendar("a", 2)?;
    subject.put_calendar(&second).await?;
    let stale = store.drop_calendar(OURS, &name, Some(Version(1))).await?;
    assert_eq!(stale, CalendarDropped::Conflict(Arc::new(second)));
    assert!(subject.calendar("a").await?.is_some());
    let whichever = store.drop_calendar(OURS, &name, None).await?;
    assert_eq!(whichever, CalendarDropped::Done);
    Ok(())
}

/// However a job is read: a page, a claim or a plan must not go by a calendar of yesterday.
pub async fn a_job_is_read_with_its_calendars_as_they_are_now(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let first = calendar("a", 1)?;
    subject.put_calendar(&first).await?;
    let key = JobKey::new("key")?;
    let job = subject
        .put(Job {
            key: Some(key.clone()),
            ..job_without(1, &[&first])?
        })
        .await?;
    let (held, ready) = (subject.claimed(job.id).await?, subject.ready(job.id).await?);
    let before = subject.job(job.id).await?;
    let second = elaborate("a").map(|it| Calendar {
        version: Version(2),
        ..it
    })?;
    subject.put_calendar(&second).await?;
    let mut now = Job::clone(&before);
    Arc::make_mut(&mut now.def).schedule.calendars.exclude = vec![Arc::new(second)];
    assert_eq!(*subject.job(job.id).await?, now, "and nothing else of it");
    assert_eq!(store.find_job(OURS, &key).await?, Some(now.clone()));
    let page = Page {
        before: None,
        limit: 9,
    };
    let listed = store.list_jobs(OURS, &JobFilter::default(), page).await?;
    assert_eq!(listed, [now.clone()]);
    let now = Arc::new(now);
    let due = store.due_jobs(&ShardSet::ALL, at(9_999), None, 9).await?;
    assert_eq!(due.jobs, from_ref(&now));
    let claimed = store.claim(leases, &[ready.id, held.id]).await?;
    for claimed in claimed {
        let Claimed::Ours(_, job) = claimed else {
            return Err(format!("{claimed:?}").into());
        };
        assert_eq!(job, now);
    }
    store.leave(leases.presence).await?;
    for orphan in store.orphans(&ShardSet::ALL, 9).await? {
        assert_eq!(orphan.job, now);
    }
    Ok(())
}

pub async fn a_job_written_with_an_old_calendar_is_read_with_the_new(subject: Subject) -> Kept {
    let (first, second) = (calendar("a", 1)?, calendar("a", 2)?);
    subject.put_calendar(&first).await?;
    let changed = subject.put(job_without(1, &[&first])?).await?;
    subject.put_calendar(&second).await?;
    let created = subject.put(job_without(2, &[&first])?).await?;
    subject.goes_by(&changed, vec![Arc::new(first)]).await?;
    for job in [created, changed] {
        let read = subject.job(job.id).await?;
        let exclude = &read.def.schedule.calendars.exclude;
        assert_eq!(*exclude, [Arc::new(second.clone())]);
    }
    Ok(())
}

pub async fn what_calendars_leave_out_is_written_with_the_slot_after_it(subject: Subject) -> Kept {
    let a = calendar("a", 1)?;
    subject.put_calendar(&a).await?;
    let job = subject.put(job_without(1, &[&a])?).await?;
    assert_eq!(
        (job.next_slot, job.slot_last),
        (Some(slot(420)), Some(at(0)))
    );
    assert_eq!(subject.due(&ShardSet::ALL, at(419), 9).await?, []);
    let batch = [firing(&job, at(419))];
    let run = RunId::for_slot(job.id, slot(420));
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, [Fired::Claimed(run)]);
    let left_out = Skip {
        note: Some("a".to_owned()),
        ..skip(60, 360, Reason::Calendar)
    };
    let entry = Run::skipped(&job, &left_out, at(419));
    assert_eq!(subject.runs().await?, [entry, subject.run(run).await?]);
    assert_eq!(subject.store.fire(&subject.leases, &batch).await?, fired);
    Ok(())
}

pub async fn opening_again_keeps_calendars_and_what_is_to_be_applied(subject: Subject) -> Kept {
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    subject.put_calendar(&elaborate("a")?).await?;
    subject.put_calendar(&calendar("b", 1)?).await?;
    subject.put_calendar(&calendar("b", 2)?).await?;
    let job = subject.put(job_without(1, &[&elaborate("a")?])?).await?;
    let before = (
        subject.store.list_calendars(OURS, None, 9).await?,
        subject.store.rules_changed().await?,
    );
    let Subject {
        store,
        clock,
        guard,
        ..
    } = subject;
    let again = Subject::over(reopen(store).await?, clock).await?;
    let after = (
        again.store.list_calendars(OURS, None, 9).await?,
        again.store.rules_changed().await?,
    );
    assert_eq!(after, before);
    assert_eq!(after.1.len(), 1);
    assert_eq!(again.job(job.id).await?, job);
    drop(guard);
    Ok(())
}
