//! Rules: calendars and zones that have changed are named until every job under them has been rescheduled.

use std::slice::from_ref;
use std::sync::Arc;

use model::schedule::{Calendars, Day};
use model::{Calendar, Definition, Job, JobId, TenantId, Version};

use super::calendars::{calendar, job_without, named};
use super::subject::new;
use super::{Kept, Subject, at, job, job_with, someone};
use crate::{BoxError, Created, JobChange, JobChanged, Rule, RunsOfChange};

pub(super) const OURS: TenantId = TenantId::DEFAULT;
pub(super) const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

pub(super) fn rule(name: &str, version: u32) -> Result<Rule, BoxError> {
    doubted(name, version, 0)
}

fn doubted(name: &str, version: u32, doubts: u32) -> Result<Rule, BoxError> {
    Ok(Rule::Calendar {
        tenant: OURS,
        name: named(name)?,
        version: Version(version),
        doubts,
    })
}

impl Subject {
    pub(super) async fn changed(&self) -> Result<Vec<Rule>, BoxError> {
        Ok(self.store.rules_changed().await?)
    }

    /// Jobs under a rule, read in pages of `limit`.
    pub(super) async fn under(
        &self,
        rule: &Rule,
        limit: usize,
    ) -> Result<Vec<(TenantId, JobId)>, BoxError> {
        let mut all: Vec<(TenantId, JobId)> = Vec::new();
        loop {
            let after = all.last().map(|(_, id)| *id);
            let page = self.store.jobs_under(rule, after, limit).await?;
            assert!(page.len() <= limit);
            let Some((_, first)) = page.first() else {
                return Ok(all);
            };
            assert!(Some(*first) > after, "a page that is not after the last");
            all.extend(page);
        }
    }
}

pub async fn a_new_calendar_is_not_changed(subject: Subject) -> Kept {
    let a = calendar("a", 1)?;
    subject.put_calendar(&a).await?;
    assert_eq!(subject.changed().await?, []);
    subject.put(job_without(1, &[&a])?).await?;
    assert_eq!(subject.changed().await?, []);
    let stands = subject.calendar("a").await?;
    assert_eq!(stands.map(|it| (it.jobs, it.applied)), Some((1, true)));
    Ok(())
}

pub async fn a_changed_calendar_is_named_until_it_is_applied(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let applied = async || -> Result<Option<bool>, BoxError> {
        Ok(subject.calendar("a").await?.map(|it| it.applied))
    };
    let first = calendar("a", 1)?;
    subject.put_calendar(&first).await?;
    subject.put_calendar(&calendar("b", 1)?).await?;
    subject.put(job_without(1, &[&first])?).await?;
    subject.put_calendar(&calendar("a", 2)?).await?;
    for _ in 0..2 {
        assert_eq!(subject.changed().await?, [rule("a", 2)?]);
        assert_eq!(applied().await?, Some(false));
    }
    let listed = store.list_calendars(OURS, None, 9).await?;
    let listed: Vec<_> = listed.iter().map(|it| it.applied).collect();
    assert_eq!(listed, [false, true]);
    store.rule_applied(&rule("a", 2)?).await?;
    assert_eq!(subject.changed().await?, []);
    assert_eq!(applied().await?, Some(true));
    Ok(())
}

pub async fn a_calendar_that_changed_again_stays_changed(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    for version in 1..=3 {
        subject.put_calendar(&calendar("a", version)?).await?;
    }
    assert_eq!(subject.changed().await?, [rule("a", 3)?]);
    for older in [1, 2] {
        store.rule_applied(&rule("a", older)?).await?;
        assert_eq!(subject.changed().await?, [rule("a", 3)?], "{older}");
    }
    store.rule_applied(&rule("a", 3)?).await?;
    assert_eq!(subject.changed().await?, []);
    Ok(())
}

pub async fn a_calendar_that_is_gone_is_not_changed(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    subject.put_calendar(&calendar("a", 1)?).await?;
    subject.put_calendar(&calendar("a", 2)?).await?;
    store.drop_calendar(OURS, &named("a")?, None).await?;
    assert_eq!(subject.changed().await?, []);
    store.rule_applied(&rule("a", 2)?).await?;
    assert_eq!(subject.calendar("a").await?, None, "nor does it come back");
    subject.put_calendar(&calendar("a", 1)?).await?;
    assert_eq!(subject.changed().await?, [], "a new one of that name");
    Ok(())
}

pub async fn each_tenants_calendar_changes_for_itself(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let theirs = Rule::Calendar {
        tenant: STRANGER,
        name: named("a")?,
        version: Version(2),
        doubts: 0,
    };
    subject.put_calendar(&calendar("a", 1)?).await?;
    for (version, before) in [(1, None), (2, Some(Version(1)))] {
        let calendar = calendar("a", version)?;
        store.put_calendar(STRANGER, &calendar, before).await?;
    }
    assert_eq!(subject.changed().await?, from_ref(&theirs));
    let stands = subject.calendar("a").await?;
    assert_eq!(stands.map(|it| it.applied), Some(true));
    store.rule_applied(&rule("a", 2)?).await?;
    assert!(subject.changed().await?.contains(&theirs), "not ours");
    store.rule_applied(&rule("a", 1)?).await?;
    store.rule_applied(&theirs).await?;
    assert_eq!(subject.changed().await?, []);
    Ok(())
}

pub async fn jobs_under_a_calendar_are_those_that_name_it(subject: Subject) -> Kept {
    let (a, b) = (calendar("a", 1)?, calendar("b", 1)?);
    subject.put_calendar(&a).await?;
    subject.put_calendar(&b).await?;
    let shared = Arc::new(a.clone());
    let only = subject
        .put(job_with(6, |def| {
            def.schedule.calendars = Calendars {
                exclude: vec![Arc::new(b.clone()), shared.clone()],
                only: vec![shared.clone()],
            };
        })?)
        .await?;
    let excluding = subject.put(job_without(1, &[&b, &a])?).await?;
    let paused = subject.put(job_without(4, &[&a])?).await?;
    let gone = subject.put(job_without(3, &[&a])?).await?;
    let moved = subject.put(job_without(2, &[&a])?).await?;
    subject.put(job_without(5, &[&b])?).await?;
    subject.put(job(7)?).await?;
    let put = subject.store.put_calendar(STRANGER, &a, None).await?;
    assert_eq!(put, crate::CalendarPut::Done);
    let strange = Arc::new(Job {
        tenant: STRANGER,
        ..job_without(8, &[&a])?
    });
    let created = subject.store.create_jobs(&[new(&strange)]).await?;
    assert_eq!(created, [Created::Done]);
    let pausing = paused.paused(at(1), None, &someone());
    subject.change(&paused, pausing, RunsOfChange::Keep).await?;
    subject.deletes(&gone).await?;
    subject.goes_by(&moved, vec![Arc::new(b.clone())]).await?;
    let expected = [excluding.id, paused.id, only.id].map(|id| (OURS, id));
    for limit in 1..=4 {
        let under = subject.under(&rule("a", 1)?, limit).await?;
        assert_eq!(under, expected, "by id, {limit} at a time");
    }
    let whatever = subject.under(&rule("a", 9)?, 9).await?;
    assert_eq!(whatever, expected, "they name no version");
    assert_eq!(subject.under(&rule("c", 1)?, 9).await?, []);
    Ok(())
}

/// What the engine does about a rule, step by step.
pub async fn a_job_rescheduled_goes_by_the_calendar_that_stands(subject: Subject) -> Kept {
    let first = calendar("a", 1)?;
    subject.put_calendar(&first).await?;
    let job = subject.put(job_without(1, &[&first])?).await?;
    assert_eq!(job.next_due_at(), Some(at(420)));
    let second = model::Calendar {
        weekly: vec![model::schedule::Weekly::parse("TUE 22:15-22:20")?],
        ..calendar("a", 2)?
    };
    subject.put_calendar(&second).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(stands.next_slot, job.next_slot, "it stands where it stood");
    let rescheduled = stands.rescheduled(at(3), &someone());
    let (rescheduled, _) = subject
        .change(&stands, rescheduled, RunsOfChange::TakeBack)
        .await?;
    let read = subject.job(job.id).await?;
    assert_eq!(*read, rescheduled);
    assert_eq!(
        (read.next_due_at(), read.version),
        (Some(at(60)), Version(2))
    );
    Ok(())
}

pub async fn a_job_names_only_calendars_that_are_there(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (one, two) = (calendar("one", 1)?, calendar("two", 1)?);
    subject.put_calendar(&one).await?;
    let missing = || Created::CalendarMissing(two.name.clone());
    let job = Arc::new(job_without(1, &[&one, &two])?);
    let other = Arc::new(job_without(2, &[&one])?);
    let both = [new(&job), new(&other)];
    assert_eq!(store.create_jobs(&both).await?, [missing(), Created::Done]);
    assert_eq!(store.get_job(OURS, job.id).await?, None);
    let stands = subject.job(other.id).await?;
    let def = Definition::clone(&job.def);
    let (after, skipped) = stands.edited(None, def, at(1), &someone());
    let change = JobChange {
        before: Arc::clone(&stands),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::TakeBack,
    };
    let changed = store.change_job(&change).await?;
    assert_eq!(changed, JobChanged::CalendarMissing(two.name.clone()));
    assert_eq!(subject.job(other.id).await?, stands, "nothing is written");
    subject.put_calendar(&two).await?;
    let changed = store.change_job(&change).await?;
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    assert_eq!(store.create_jobs(&[new(&job)]).await?, [Created::Done]);
    Ok(())
}

pub async fn a_job_written_by_an_older_calendar_is_to_be_rescheduled(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let old = calendar("c", 1)?;
    subject.put_calendar(&old).await?;
    let second = rule("c", 2)?;
    let job = subject.put(job_without(1, &[&old])?).await?;
    assert_eq!(store.rules_changed().await?, [], "it is as it stands");
    let now = Calendar {
        weekly: Vec::new(),
        dates: vec![Day::parse("2030-01-01")?],
        ..calendar("c", 2)?
    };
    subject.put_calendar(&now).await?;
    store.rule_applied(&second).await?;
    let late = Arc::new(job_without(2, &[&old])?);
    assert_eq!(store.create_jobs(&[new(&late)]).await?, [Created::Done]);
    let once = doubted("c", 2, 1)?;
    assert_eq!(store.rules_changed().await?, from_ref(&once));
    store.rule_applied(&once).await?;
    assert_eq!(store.rules_changed().await?, []);
    // The same for one that was read before, and is written now.
    let edited = job.edited(None, Definition::clone(&job.def), at(1), &someone());
    subject.change(&job, edited, RunsOfChange::TakeBack).await?;
    let twice = doubted("c", 2, 2)?;
    assert_eq!(store.rules_changed().await?, from_ref(&twice));
    store.rule_applied(&twice).await?;
    let stands = subject.job(job.id).await?;
    let gone = stands.deleted(at(2), &someone());
    subject.change(&stands, gone, RunsOfChange::Cancel).await?;
    assert_eq!(store.rules_changed().await?, []);
    Ok(())
}

pub async fn a_doubt_that_comes_while_jobs_are_rescheduled_stays(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let old = calendar("c", 1)?;
    subject.put_calendar(&old).await?;
    subject.put(job_without(2, &[&old])?).await?;
    let now = Calendar {
        weekly: Vec::new(),
        dates: vec![Day::parse("2030-01-01")?],
        ..calendar("c", 2)?
    };
    subject.put_calendar(&now).await?;
    let changed = rule("c", 2)?;
    assert_eq!(store.rules_changed().await?, from_ref(&changed));
    assert_eq!(store.jobs_under(&changed, None, 9).await?.len(), 1);
    // One more, with a lesser id than those that were just rescheduled; whoever made it had read the calendar before.
    let late = Arc::new(job_without(1, &[&old])?);
    assert_eq!(store.create_jobs(&[new(&late)]).await?, [Created::Done]);
    store.rule_applied(&changed).await?;
    let changed = doubted("c", 2, 1)?;
    assert_eq!(store.rules_changed().await?, from_ref(&changed));
    store.rule_applied(&changed).await?;
    assert_eq!(store.rules_changed().await?, []);
    Ok(())
}
