//! Changes: written whole, or not at all when someone was faster.

use std::sync::Arc;

use model::shard::ShardSet;
use model::target::HttpTarget;
use model::{
    Definition, Delivery, Job, JobId, JobKey, JobState, Reason, RunState, Schedule, Skip, Target,
    TenantId, Version,
};

use super::subject::new;
use super::{Kept, Subject, at, every, job, job_with, slot, someone};
use crate::{BoxError, Created, JobChange, JobChanged, RunsOfChange, Withdrawal};

fn change(before: &Arc<Job>, (after, skipped): (Job, Vec<Skip>)) -> JobChange {
    let (before, after) = (before.clone(), Arc::new(after));
    JobChange {
        before,
        after,
        skipped,
        runs: RunsOfChange::Keep,
    }
}

fn keyed(number: u8, key: &str) -> Result<Job, BoxError> {
    Ok(Job {
        key: Some(JobKey::new(key)?),
        ..job(number)?
    })
}

fn another(job: &Job) -> Definition {
    Definition {
        payload: Some(bytes::Bytes::from_static(b"2")),
        ..Definition::clone(&job.def)
    }
}

pub async fn a_change_is_written_whole(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let once = job_with(1, |def| def.delivery = Delivery::AtMostOnce)?;
    let key = keyed(1, "a")?.key;
    let before = subject.put(Job { key, ..once }).await?;
    let mut def = another(&before);
    def.delivery = Delivery::AtLeastOnce;
    def.labels.insert("team".to_owned(), "ops".to_owned());
    let (mut after, _) = before.edited(Some(JobKey::new("b")?), def, at(90), &someone());
    after.note = Some("by hand".to_owned());
    let changed = store
        .change_job(&change(&before, (after.clone(), Vec::new())))
        .await?;
    assert_eq!(
        changed,
        JobChanged::Done {
            job: Box::new(after.clone()),
            marked: vec![],
            cancelled: 0,
        }
    );
    assert_eq!(*subject.job(before.id).await?, after);
    assert_eq!(
        (after.version, after.next_slot),
        (Version(2), Some(slot(60))),
        "overdue, and still due"
    );
    assert_eq!(after.once_until, Some(Version::FIRST));
    let due = store.due_jobs(&ShardSet::ALL, at(60), None, 9).await?;
    assert_eq!(due.jobs, [Arc::new(after)]);
    Ok(())
}

pub async fn a_change_of_a_stale_read_is_a_conflict(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let before = subject.put(job(1)?).await?;
    let first = change(
        &before,
        before.paused(at(1), Some("first".to_owned()), &someone()),
    );
    assert!(matches!(
        store.change_job(&first).await?,
        JobChanged::Done { .. }
    ));
    let second = change(
        &before,
        before.edited(None, another(&before), at(2), &someone()),
    );
    let expected = JobChanged::Conflict(Box::new(Job::clone(&first.after)));
    assert_eq!(store.change_job(&second).await?, expected);
    assert_eq!(
        store.change_job(&first).await?,
        expected,
        "also when the first is sent again"
    );
    assert_eq!(subject.job(before.id).await?, first.after);
    Ok(())
}

pub async fn a_change_that_a_firing_overtook_is_a_conflict(subject: Subject) -> Kept {
    let before = subject.put(job(1)?).await?;
    subject.claimed(before.id).await?;
    let stands = subject.job(before.id).await?;
    let late = change(&before, before.paused(at(61), None, &someone()));
    let changed = subject.store.change_job(&late).await?;
    assert_eq!(changed, JobChanged::Conflict(Box::new(Job::clone(&stands))));
    Ok(())
}

pub async fn a_change_that_cannot_be_kept_changes_nothing(subject: Subject) -> Kept {
    let before = subject.put(job(1)?).await?;
    let mut target = HttpTarget::new("https://example.com/hook", None)?;
    target.headers.push(("x-odd".parse()?, "ö".parse()?));
    let def = Definition {
        target: Target::Http(target),
        ..another(&before)
    };
    let odd = change(&before, before.edited(None, def, at(2), &someone()));
    let changed = subject.store.change_job(&odd).await?;
    let JobChanged::Refused(why) = &changed else {
        return Err(format!("{changed:?}").into());
    };
    assert!(why.contains("x-odd"), "{why}");
    assert_eq!(subject.job(before.id).await?, before);
    Ok(())
}

pub async fn a_change_of_a_job_that_is_gone_changes_nothing(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let never = Arc::new(job(1)?);
    let changed = store
        .change_job(&change(&never, never.paused(at(1), None, &someone())))
        .await?;
    assert_eq!(changed, JobChanged::Missing);
    let job = subject.put(job(2)?).await?;
    let (gone, _) = subject
        .change(&job, job.deleted(at(1), &someone()), RunsOfChange::Keep)
        .await?;
    let gone = Arc::new(gone);
    let changed = store
        .change_job(&change(&gone, gone.deleted(at(2), &someone())))
        .await?;
    assert_eq!(changed, JobChanged::Missing);
    Ok(())
}

pub async fn a_rename_takes_the_new_key_and_frees_the_old(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let before = subject.put(keyed(1, "a")?).await?;
    let (a, b) = (JobKey::new("a")?, JobKey::new("b")?);
    let renamed = before.edited(Some(b.clone()), another(&before), at(1), &someone());
    subject.change(&before, renamed, RunsOfChange::Keep).await?;
    assert_eq!(store.find_job(TenantId::DEFAULT, &a).await?, None);
    let found = store.find_job(TenantId::DEFAULT, &b).await?;
    assert_eq!(found.map(|job| job.id), Some(before.id));
    let next = Arc::new(keyed(2, "a")?);
    assert_eq!(store.create_jobs(&[new(&next)]).await?, [Created::Done]);
    let clash = Arc::new(keyed(3, "b")?);
    assert_eq!(
        store.create_jobs(&[new(&clash)]).await?,
        [Created::KeyTaken(before.id)]
    );
    Ok(())
}

pub async fn a_rename_to_a_key_in_use_changes_nothing(subject: Subject) -> Kept {
    let holder = subject.put(keyed(1, "a")?).await?;
    let before = subject.put(keyed(2, "b")?).await?;
    let renamed = before.edited(holder.key.clone(), another(&before), at(1), &someone());
    let changed = subject.store.change_job(&change(&before, renamed)).await?;
    assert_eq!(changed, JobChanged::KeyTaken(holder.id));
    assert_eq!(subject.job(before.id).await?, before);
    Ok(())
}

pub async fn a_deleted_job_is_gone_and_frees_its_key(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let before = subject.put(keyed(1, "a")?).await?;
    let (gone, _) = subject
        .change(
            &before,
            before.deleted(at(1), &someone()),
            RunsOfChange::Cancel,
        )
        .await?;
    assert_eq!(gone.state, JobState::Deleted);
    assert_eq!(store.get_job(TenantId::DEFAULT, before.id).await?, None);
    let key = JobKey::new("a")?;
    assert_eq!(store.find_job(TenantId::DEFAULT, &key).await?, None);
    let next = Arc::new(keyed(2, "a")?);
    assert_eq!(store.create_jobs(&[new(&next)]).await?, [Created::Done]);
    let found: Option<JobId> = store
        .find_job(TenantId::DEFAULT, &key)
        .await?
        .map(|job| job.id);
    assert_eq!(found, Some(next.id));
    Ok(())
}

pub async fn a_pause_says_who_and_why(subject: Subject) -> Kept {
    let before = subject.put(job(1)?).await?;
    let note = Some("too \"loud\"".to_owned());
    let paused = before.paused(at(30), note, &someone());
    let (paused, _) = subject.change(&before, paused, RunsOfChange::Keep).await?;
    let stands = subject.job(before.id).await?;
    assert_eq!(*stands, paused);
    assert_eq!(
        (stands.note.as_deref(), stands.paused_by.as_deref()),
        (Some("too \"loud\""), Some("someone"))
    );
    let resumed = stands.resumed(at(40), false, &someone());
    subject.change(&stands, resumed, RunsOfChange::Keep).await?;
    let stands = subject.job(before.id).await?;
    assert_eq!((&stands.note, &stands.paused_by), (&None, &None));
    Ok(())
}

/// A lead is long enough for two edits: the first takes a slot back, the second replaces the schedule that had it.
pub async fn two_edits_within_a_lead_lose_no_slot(subject: Subject) -> Kept {
    let bounded = |secs| -> Result<Schedule, BoxError> {
        let mut schedule = every(secs)?;
        schedule.bounds.runs_max = Some(9);
        Ok(schedule)
    };
    let schedule = bounded(60)?;
    let job = subject
        .put(job_with(1, |def| def.schedule = schedule)?)
        .await?;
    let run = subject.claimed(job.id).await?;
    for (secs, schedule) in [(59, bounded(60)?), (61, bounded(7)?)] {
        let stands = subject.job(job.id).await?;
        let mut def = Definition::clone(&stands.def);
        def.schedule = schedule;
        let edited = stands.edited(None, def, at(secs), &someone());
        subject
            .change(&stands, edited, RunsOfChange::TakeBack)
            .await?;
    }
    let edited = subject.job(job.id).await?;
    assert_eq!((edited.next_slot, edited.runs_made), (Some(slot(63)), 1));
    let answer = Withdrawal {
        run: run.id,
        taken_back: true,
    };
    let presence = subject.presence();
    subject.store.withdraw(presence, &[answer], at(62)).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!((stands.next_slot, stands.runs_made), (Some(slot(63)), 0));
    let slots = subject
        .store
        .list_slots(TenantId::DEFAULT, job.id, at(0), at(62), 9)
        .await?;
    let [entry] = &slots[..] else {
        return Err(format!("slot 60 ran or is recorded, not {slots:?}").into());
    };
    let expected = (RunState::Skipped, Some(Reason::Missed), Some(slot(60)));
    assert_eq!((entry.state, entry.reason, entry.slot), expected);
    let note = Some("taken back for an edit, and edited again");
    assert_eq!(entry.note.as_deref(), note);
    Ok(())
}
