//! Zones: those whose tables have changed are named until every job under them has been rescheduled, by all nodes alike.

use std::slice::from_ref;
use std::sync::Arc;

use model::schedule::{Calendars, Cron, CronOptions, Every, Zone};
use model::{Calendar, Definition, Job, Schedule};

use super::calendars::{calendar, job_without};
use super::rules::{OURS, STRANGER, rule};
use super::subject::new;
use super::{Kept, Subject, at, job, job_with, node, someone};
use crate::{BoxError, Created, NodeInfo, Rule, RunsOfChange};

/// The digest of the tables that zones are followed by otherwise.
const OTHER: u64 = 1;

/// A zone by the tables of this binary.
fn zone(name: &str) -> Result<Rule, BoxError> {
    Ok(Rule::Zone {
        name: name.to_owned(),
        digest: Zone::get(name)?.digest(),
        known: OTHER,
    })
}

/// The same zone by other tables than these.
fn otherwise(name: &str) -> Result<Rule, BoxError> {
    Ok(Rule::Zone {
        name: name.to_owned(),
        digest: OTHER,
        known: Zone::get(name)?.digest(),
    })
}

/// A node of another release.
fn older() -> NodeInfo {
    NodeInfo {
        tables: "2019a".to_owned(),
        ..node("older")
    }
}

fn zones(rules: &[Rule]) -> Vec<&str> {
    let zones = rules.iter().filter_map(|rule| match rule {
        Rule::Zone { name, .. } => Some(name.as_str()),
        Rule::Calendar { .. } => None,
    });
    zones.collect()
}

fn cron(zone: &str) -> Result<Schedule, BoxError> {
    let options = CronOptions {
        zone: Some(Zone::get(zone)?),
        ..CronOptions::default()
    };
    Ok(Schedule::from(Cron::parse(
        &["0 9 * * *".to_owned()],
        options,
    )?))
}

fn interval(text: &str, zone: &str) -> Result<Schedule, BoxError> {
    let every = Every::parse(text, at(0), Zone::get(zone)?)?;
    Ok(Schedule::from(every))
}

fn scheduled(number: u8, schedule: Schedule) -> Result<Job, BoxError> {
    job_with(number, |def| def.schedule = schedule)
}

pub async fn a_zone_is_named_while_its_tables_are_others(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let berlin = zone("Europe/Berlin")?;
    subject.put(scheduled(1, cron("Europe/Berlin")?)?).await?;
    subject.put(scheduled(2, cron("Asia/Kolkata")?)?).await?;
    assert_eq!(
        subject.changed().await?,
        [],
        "scheduled by these very tables"
    );
    store.rule_applied(&otherwise("Europe/Berlin")?).await?;
    assert_eq!(subject.changed().await?, from_ref(&berlin));
    subject.put(scheduled(3, cron("Europe/Berlin")?)?).await?;
    assert_eq!(
        subject.changed().await?,
        from_ref(&berlin),
        "a new job says nothing of the old ones"
    );
    store.rule_applied(&berlin).await?;
    assert_eq!(subject.changed().await?, []);
    Ok(())
}

/// They compute other slots for the same jobs.
pub async fn no_zone_is_applied_while_nodes_with_other_tables_live(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    subject.put(scheduled(1, cron("Europe/Berlin")?)?).await?;
    store.join(&node("first")).await?;
    assert_eq!(subject.changed().await?, []);
    let older = store.join(&older()).await?;
    let changed = subject.changed().await?;
    assert_eq!(zones(&changed), ["Europe/Berlin"]);
    store.rule_applied(&changed[0]).await?;
    assert_eq!(subject.changed().await?, changed, "it lives");
    subject.put(scheduled(2, cron("Asia/Kolkata")?)?).await?;
    let both = subject.changed().await?;
    assert_eq!(zones(&both), ["Asia/Kolkata", "Europe/Berlin"]);
    store.leave(older).await?;
    let left = subject.changed().await?;
    assert_eq!(left, both, "jobs are as it has left them");
    for rule in &left {
        store.rule_applied(rule).await?;
    }
    assert_eq!(subject.changed().await?, []);
    store.join(&node("second")).await?;
    subject.put(scheduled(3, cron("Europe/Paris")?)?).await?;
    assert_eq!(subject.changed().await?, [], "all are alike");
    Ok(())
}

pub async fn a_zone_that_was_in_doubt_again_while_it_was_applied_stays_changed(
    subject: Subject,
) -> Kept {
    let Subject { store, .. } = &subject;
    subject.put(scheduled(1, cron("Europe/Berlin")?)?).await?;
    store.join(&node("first")).await?;
    let mut known = Vec::new();
    for _ in 0..3 {
        let found = subject.changed().await?;
        let older = store.join(&older()).await?;
        store.leave(older).await?;
        for rule in &found {
            store.rule_applied(rule).await?;
        }
        let changed = subject.changed().await?;
        assert_eq!(zones(&changed), ["Europe/Berlin"]);
        assert!(!known.contains(&changed), "{changed:?}");
        known.push(changed);
    }
    store.rule_applied(&subject.changed().await?[0]).await?;
    assert_eq!(subject.changed().await?, []);
    Ok(())
}

pub async fn an_edit_makes_a_zone_known_too(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let def = Definition {
        schedule: cron("Asia/Kolkata")?,
        ..Definition::clone(&job.def)
    };
    let edited = job.edited(None, def, at(1), &someone());
    subject.change(&job, edited, RunsOfChange::TakeBack).await?;
    assert_eq!(subject.changed().await?, []);
    let kolkata = zone("Asia/Kolkata")?;
    assert_eq!(subject.under(&kolkata, 9).await?, [(OURS, job.id)]);
    let elsewhere = otherwise("Asia/Kolkata")?;
    subject.store.rule_applied(&elsewhere).await?;
    assert_eq!(subject.changed().await?, [kolkata]);
    Ok(())
}

pub async fn jobs_under_a_zone_are_those_whose_slots_it_moves(subject: Subject) -> Kept {
    let berlin = zone("Europe/Berlin")?;
    let daily = subject.put(scheduled(5, cron("Europe/Berlin")?)?).await?;
    let monthly = subject
        .put(scheduled(2, interval("P1M", "Europe/Berlin")?)?)
        .await?;
    let strange = Arc::new(Job {
        tenant: STRANGER,
        ..scheduled(3, cron("Europe/Berlin")?)?
    });
    let created = subject.store.create_jobs(&[new(&strange)]).await?;
    assert_eq!(created, [Created::Done]);
    let gone = subject.put(scheduled(4, cron("Europe/Berlin")?)?).await?;
    subject.deletes(&gone).await?;
    let elapsed = interval("PT1H", "Europe/Berlin")?;
    subject.put(scheduled(6, elapsed)?).await?;
    subject.put(scheduled(7, cron("Europe/Paris")?)?).await?;
    subject.put(scheduled(8, cron("UTC")?)?).await?;
    subject.put(job(9)?).await?;
    let expected = [(OURS, monthly.id), (STRANGER, strange.id), (OURS, daily.id)];
    for limit in 1..=4 {
        let under = subject.under(&berlin, limit).await?;
        assert_eq!(under, expected, "by id, {limit} at a time");
    }
    let stands = subject.job(daily.id).await?;
    let def = Definition {
        schedule: cron("Europe/Paris")?,
        ..Definition::clone(&stands.def)
    };
    let edited = stands.edited(None, def, at(1), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    assert_eq!(subject.under(&berlin, 9).await?, expected[..2]);
    Ok(())
}

pub async fn a_calendars_own_zone_moves_the_slots_of_its_jobs(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let kept_in = |name: &str, version, zone: &str| -> Result<Calendar, BoxError> {
        Ok(Calendar {
            zone: Some(Zone::get(zone)?),
            ..calendar(name, version)?
        })
    };
    let holidays = kept_in("holidays", 1, "Europe/Berlin")?;
    let nights = kept_in("nights", 1, "Europe/Berlin")?;
    let universal = kept_in("universal", 1, "UTC")?;
    let plain = calendar("plain", 1)?;
    for calendar in [&holidays, &nights, &universal, &plain] {
        subject.put_calendar(calendar).await?;
    }
    let one = subject.put(job_without(4, &[&holidays])?).await?;
    let both = subject.put(job_without(2, &[&nights, &holidays])?).await?;
    let own = Schedule {
        calendars: Calendars {
            exclude: Vec::new(),
            only: vec![Arc::new(nights.clone())],
        },
        ..cron("Europe/Berlin")?
    };
    let own = subject.put(scheduled(3, own)?).await?;
    subject.put(job_without(1, &[&universal, &plain])?).await?;
    let gone = subject.put(job_without(5, &[&nights])?).await?;
    subject.deletes(&gone).await?;
    assert_eq!(subject.changed().await?, [], "known by these very tables");
    let berlin = zone("Europe/Berlin")?;
    store.rule_applied(&otherwise("Europe/Berlin")?).await?;
    assert_eq!(subject.changed().await?, from_ref(&berlin));
    let expected = [both.id, own.id, one.id].map(|id| (OURS, id));
    for limit in 1..=4 {
        let under = subject.under(&berlin, limit).await?;
        assert_eq!(under, expected, "each once, by id, {limit} at a time");
    }
    store.rule_applied(&berlin).await?;
    let elsewhere = kept_in("holidays", 2, "Asia/Kolkata")?;
    subject.put_calendar(&elsewhere).await?;
    assert_eq!(subject.changed().await?, [rule("holidays", 2)?]);
    assert_eq!(subject.under(&berlin, 9).await?, expected[..2]);
    let moved = [both.id, one.id].map(|id| (OURS, id));
    let kolkata = zone("Asia/Kolkata")?;
    assert_eq!(subject.under(&kolkata, 9).await?, moved);
    Ok(())
}
