//! What time brings, as far as only this store can get it wrong: what it knows by heart, what it looks up, and
//! what it counts.

use model::schedule::{Calendars, Cron, CronOptions, Kind, Weekly, Zone};
use model::shard::ShardSet;
use model::{Definition, JobState, Overlap, Reason, RunState, Schedule, Verdict};

use super::tests::{folder, new, open};
use super::writer::By;
use super::*;
use crate::conformance::{
    DONE, Subject, TestClock, after_completion, at, every, firing, job_with, settlement, slot,
    someone,
};
use crate::{JobChange, RunsOfChange};

const ME: TenantId = TenantId::DEFAULT;

fn name(text: &str) -> CalendarName {
    CalendarName::new(text).unwrap()
}

/// Nights, from two to four.
fn nights(calendar: &str) -> Calendar {
    Calendar {
        weekly: vec![Weekly::parse("MON-SUN 02:00-04:00").unwrap()],
        ..Calendar::new(name(calendar), at(0))
    }
}

/// Every minute, but not when these say so.
fn excluding(number: u8, calendars: &[&str]) -> Job {
    let schedule = Schedule {
        calendars: Calendars {
            exclude: calendars.iter().map(|it| Arc::new(nights(it))).collect(),
            only: Vec::new(),
        },
        ..every(60).unwrap()
    };
    job_with(number, |def| def.schedule = schedule).unwrap()
}

async fn over(store: &Arc<SqliteStore>) -> Subject {
    Subject::over(store.clone(), TestClock::default())
        .await
        .unwrap()
}

async fn put(store: &SqliteStore, calendar: &str) {
    let put = store.put_calendar(ME, &nights(calendar), None).await;
    assert_eq!(put.unwrap(), CalendarPut::Done);
}

async fn jobs_of(store: &SqliteStore, calendar: &str) -> u64 {
    let found = store.get_calendars(ME, &[name(calendar)]).await.unwrap();
    found[0].as_ref().unwrap().jobs
}

async fn sql(store: &SqliteStore, sql: &'static str, id: JobId) {
    let done = store.writer.call(By::Client, 1, move |db| {
        Ok(db.conn.execute(sql, [id.as_bytes()])?)
    });
    assert_eq!(done.await.unwrap(), 1);
}

#[tokio::test]
async fn users_of_a_calendar_are_counted_through_everything_that_happens_to_them() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    for calendar in ["a", "b"] {
        put(&store, calendar).await;
    }
    let subject = over(&store).await;
    let both = subject.put(excluding(1, &["a", "b", "a"])).await.unwrap();
    let one = subject.put(excluding(2, &["a"])).await.unwrap();
    assert_eq!(
        (jobs_of(&store, "a").await, jobs_of(&store, "b").await),
        (2, 1)
    );
    let def = Definition::clone(&excluding(1, &["b"]).def);
    let edited = both.edited(None, def, at(1), &someone());
    let (both, _) = subject
        .change(&both, edited, RunsOfChange::TakeBack)
        .await
        .unwrap();
    assert_eq!(
        (jobs_of(&store, "a").await, jobs_of(&store, "b").await),
        (1, 1)
    );
    for job in [Arc::new(both), one] {
        let deleted = job.deleted(at(2), &someone());
        subject
            .change(&job, deleted, RunsOfChange::Cancel)
            .await
            .unwrap();
    }
    assert_eq!(
        (jobs_of(&store, "a").await, jobs_of(&store, "b").await),
        (0, 0)
    );
    for calendar in ["a", "b"] {
        let dropped = store.drop_calendar(ME, &name(calendar), None).await;
        assert_eq!(dropped.unwrap(), CalendarDropped::Done);
    }
    let left = store.clients.call(|conn| {
        let sql =
            "SELECT (SELECT count(*) FROM calendar_uses) + (SELECT count(*) FROM calendar_jobs)";
        Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(left.await.unwrap(), 0);
}

#[tokio::test]
async fn a_job_that_is_forgotten_names_no_calendar_any_more() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    put(&store, "a").await;
    let mut job = excluding(1, &["a"]);
    (job.state, job.next_slot) = (JobState::Finished, None);
    store.create_jobs(&[new(job)]).await.unwrap();
    assert_eq!(jobs_of(&store, "a").await, 1);
    let day = std::time::Duration::from_secs(86_400);
    let keep = Keep {
        now: at(2 * 86_400),
        history: day,
        finished: day,
    };
    assert_eq!(store.retain(&keep).await.unwrap().jobs, 1);
    assert_eq!(jobs_of(&store, "a").await, 0);
}

#[tokio::test]
async fn a_job_whose_calendar_is_gone_can_be_shown_but_not_planned() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    put(&store, "a").await;
    let job = excluding(1, &["a"]);
    store.create_jobs(&[new(job.clone())]).await.unwrap();
    let lost = store.writer.call(By::Client, 1, |db| {
        Ok(db.conn.execute("DELETE FROM calendars", [])?)
    });
    assert_eq!(lost.await.unwrap(), 1);
    let read = store.get_job(ME, job.id).await.unwrap().unwrap();
    let Kind::Broken(broken) = &read.def.schedule.kind else {
        panic!("{read:?}")
    };
    assert!(broken.error.contains("\"a\""), "{}", broken.error);
    let due = store.due_jobs(&ShardSet::ALL, at(600), None, 10).await;
    let due = due.unwrap();
    assert_eq!(due.jobs, []);
    assert_eq!(due.unreadable, [(job.id, broken.error.clone())]);
    // Changing something else leaves it naming what it named.
    let (paused, skipped) = read.paused(at(1), None, &someone());
    let change = JobChange {
        before: read.into(),
        after: paused.into(),
        skipped,
        runs: RunsOfChange::Keep,
    };
    store.change_job(&change).await.unwrap();
    put(&store, "a").await;
    assert_eq!(jobs_of(&store, "a").await, 1);
    let read = store.get_job(ME, job.id).await.unwrap().unwrap();
    assert_eq!(read.def.schedule, job.def.schedule);
}

#[tokio::test]
async fn a_claim_brings_the_job_with_its_calendars() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    put(&store, "a").await;
    let subject = over(&store).await;
    let job = subject.put(excluding(1, &["a"])).await.unwrap();
    let run = subject.ready(job.id).await.unwrap();
    let claimed = store.claim(&subject.leases, &[run.id]).await.unwrap();
    let [Claimed::Ours(_, claimed)] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    assert_eq!(*claimed, subject.job(job.id).await.unwrap());
    assert_eq!(claimed.def, job.def);
}

#[tokio::test]
async fn a_calendar_that_cannot_be_read_hides_neither_its_jobs_nor_others() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    for calendar in ["a", "b"] {
        put(&store, calendar).await;
    }
    let job = excluding(1, &["a"]);
    store.create_jobs(&[new(job.clone())]).await.unwrap();
    let spoil = |db: &mut db::Db| {
        let sql = "UPDATE calendars SET doc = ?1 WHERE name = 'a'";
        let doc: &[u8] = b"{\"zone\":\"Mars/Olympus\"}";
        Ok(db.conn.execute(sql, [doc])?)
    };
    assert_eq!(store.writer.call(By::Client, 1, spoil).await.unwrap(), 1);
    let listed = store.list_calendars(ME, None, 10).await.unwrap();
    let names: Vec<_> = listed.iter().map(|it| it.calendar.name.as_str()).collect();
    assert_eq!(names, ["b"]);
    let read = store.get_job(ME, job.id).await.unwrap().unwrap();
    assert!(matches!(read.def.schedule.kind, Kind::Broken(_)));
    // Its version is known, so it can be written again.
    let again = nights("a");
    let put = store.put_calendar(ME, &again, Some(Version::FIRST)).await;
    assert_eq!(put.unwrap(), CalendarPut::Done);
    let read = store.get_job(ME, job.id).await.unwrap().unwrap();
    assert_eq!(read, job);
}

#[tokio::test]
async fn a_zone_is_known_by_the_tables_its_first_job_was_scheduled_by() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let zone = Zone::get("Europe/Berlin").unwrap();
    let berlin = |number| {
        let options = CronOptions {
            zone: Some(zone.clone()),
            ..CronOptions::default()
        };
        let cron = Cron::parse(&["0 9 * * *".to_owned()], options).unwrap();
        job_with(number, |def| def.schedule = cron.into()).unwrap()
    };
    let age = |db: &mut db::Db| Ok(db.conn.execute("UPDATE zones SET digest = 7", [])?);
    store.create_jobs(&[new(berlin(1))]).await.unwrap();
    assert_eq!(store.rules_changed().await.unwrap(), []);
    assert_eq!(store.writer.call(By::Client, 1, age).await.unwrap(), 1);
    // A job written since then changes nothing for those that came before.
    store.create_jobs(&[new(berlin(2))]).await.unwrap();
    let rule = Rule::Zone {
        name: "Europe/Berlin".to_owned(),
        digest: zone.digest(),
        known: 7,
    };
    let changed = store.rules_changed().await.unwrap();
    assert_eq!(changed, std::slice::from_ref(&rule));
    let first = store.jobs_under(&rule, None, 1).await.unwrap();
    assert_eq!(first, [(ME, berlin(1).id)]);
    let after = store.jobs_under(&rule, Some(first[0].1), 10).await.unwrap();
    assert_eq!(after, [(ME, berlin(2).id)]);
    store.rule_applied(&rule).await.unwrap();
    assert_eq!(store.rules_changed().await.unwrap(), []);
}

/// Due a minute after the end of its last run.
fn resting(number: u8) -> Job {
    job_with(number, |def| {
        def.schedule = after_completion(60).unwrap();
        def.overlap = Overlap::Skip;
    })
    .unwrap()
}

#[tokio::test]
async fn which_jobs_rest_is_known_again_after_a_call_was_taken_back() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = over(&store).await;
    let (kept, lost) = (resting(1), resting(2));
    for job in [&kept, &lost] {
        subject.put(job.clone()).await.unwrap();
    }
    let run = subject.claimed(kept.id).await.unwrap();
    // Fires, and fails before it can be committed.
    let leases = subject.leases.clone();
    let planned = subject.job(lost.id).await.unwrap();
    let row = fire::FiringRow::new(&firing(&planned, at(60)));
    let fail = move |db: &mut db::Db| -> fault::Done<()> {
        db.fire(&leases, std::slice::from_ref(&row))?;
        Err(StoreError::Full.into())
    };
    assert!(store.writer.call(By::Client, 1, fail).await.is_err());
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await;
    let due_at = Some(at(121));
    assert_eq!(
        settled.unwrap(),
        Settled::Done {
            freed: None,
            due_at,
            paused: None,
        }
    );
    assert_eq!(*subject.job(lost.id).await.unwrap(), lost);
}

#[tokio::test]
async fn a_job_that_cannot_be_read_when_its_run_ends_says_so_instead_of_resting_for_ever() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = over(&store).await;
    let job = subject.put(resting(1)).await.unwrap();
    let run = subject.claimed(job.id).await.unwrap();
    let spoil = r#"UPDATE defs SET doc = CAST('{"schedule":{"every":"P1D","anchor":1,"after_completion":true,
                   "zone":"Mars/Olympus"},"target":{"http":{"url":"http://localhost/"}}}' AS BLOB) WHERE id = ?1"#;
    sql(&store, spoil, job.id).await;
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await;
    assert_eq!(settled.unwrap(), DONE);
    let read = subject.job(job.id).await.unwrap();
    assert_eq!((read.state, read.version), (JobState::Invalid, Version(2)));
    let note = read.note.as_deref().unwrap_or_default();
    assert!(note.contains("Mars/Olympus"), "{note}");
    assert_eq!(
        subject.run(run.id).await.unwrap().state,
        RunState::Succeeded
    );
}

#[tokio::test]
async fn runs_are_counted_from_what_is_stored_not_from_what_was_planned() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = over(&store).await;
    let bounded = job_with(1, |def| def.schedule.bounds.runs_max = Some(3)).unwrap();
    let planned = subject.put(bounded).await.unwrap();
    sql(
        &store,
        "UPDATE jobs SET runs_made = 2 WHERE id = ?1",
        planned.id,
    )
    .await;
    let firings = [firing(&planned, at(60))];
    let fired = store.fire(&subject.leases, &firings).await.unwrap();
    assert!(matches!(fired[..], [Fired::Claimed(_)]), "{fired:?}");
    let job = subject.job(planned.id).await.unwrap();
    assert_eq!((job.state, job.runs_left()), (JobState::Finished, Some(0)));
    assert_eq!((job.next_slot, job.state_at), (None, at(60)));
}

#[tokio::test]
async fn a_stretch_is_found_from_days_after_it_began_unless_something_came_between() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = over(&store).await;
    let day = 86_400;
    let job = subject.put(job_with(1, |_| {}).unwrap()).await.unwrap();
    let paused = job.paused(at(1), None, &someone());
    let (job, _) = subject
        .change(&job, paused, RunsOfChange::TakeBack)
        .await
        .unwrap();
    // As it is written when days lie so far back that they are not told apart.
    let now = at(5 * day + 1);
    let (after, _) = job.resumed(now, false, &someone());
    let whole = job.passed_while_paused(now, &someone());
    let resumed = (after, whole.into_iter().collect());
    let (job, _) = subject
        .change(&Arc::new(job), resumed, RunsOfChange::Keep)
        .await
        .unwrap();
    let slots = async |from, to, limit| {
        let found = store.list_slots(ME, job.id, at(from), at(to), limit).await;
        let one = |run: Run| (run.id.at(), run.state);
        found.unwrap().into_iter().map(one).collect::<Vec<_>>()
    };
    let entry = (at(60), RunState::Skipped);
    assert_eq!(slots(3 * day, 4 * day, 10).await, [entry]);
    assert_eq!(slots(5 * day, 6 * day, 10).await, [entry]);
    assert_eq!(slots(5 * day + 1, 6 * day, 10).await, [], "it ended before");
    assert_eq!(slots(60, 61, 10).await, [entry], "once, and not twice");
    let run = subject.ready(job.id).await.unwrap();
    let live = (run.id.at(), RunState::Ready);
    assert_eq!(live.0, at(5 * day + 60));
    assert_eq!(slots(3 * day, 6 * day, 10).await, [entry, live]);
    assert_eq!(slots(3 * day, 6 * day, 1).await, [entry]);
    assert_eq!(slots(3 * day, 3 * day, 10).await, [entry]);
    assert_eq!(slots(5 * day + 60, 6 * day, 10).await, [live]);
    assert_eq!(slots(5 * day + 61, 6 * day, 10).await, []);
    store.cancel_run(ME, run.id, at(6 * day)).await.unwrap();
    let ended = (run.id.at(), RunState::Cancelled);
    assert_eq!(slots(0, 6 * day, 10).await, [entry, ended]);
    let entry = store
        .list_slots(ME, job.id, at(0), at(61), 1)
        .await
        .unwrap();
    assert_eq!(entry[0].reason, Some(Reason::Paused));
    assert_eq!(entry[0].slot, Some(slot(60)));
}
