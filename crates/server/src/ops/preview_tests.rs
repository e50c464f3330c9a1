use model::job::Definition;
use model::schedule::{Bounds, CronOptions};
use model::{JobId, Target};

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn now() -> Timestamp {
    at("2026-01-01T12:00:00Z")
}

fn job(text: &str, bounds: Bounds) -> Job {
    let mut schedule = Schedule::parse_text(text, CronOptions::default(), now()).unwrap();
    schedule.bounds = bounds;
    let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    let id = JobId::new(now(), [1; 10]);
    Job::new(id, TenantId::DEFAULT, None, def, now())
}

fn runs_max(count: u32) -> Bounds {
    Bounds {
        runs_max: Some(count),
        ..Bounds::default()
    }
}

fn check(before: &Job, after: &Job, removed: &[&str], added: &[&str]) {
    let slots = |texts: &[&str]| texts.iter().map(|text| Slot(at(text))).collect::<Vec<_>>();
    let expected = Difference {
        removed: slots(removed),
        added: slots(added),
    };
    assert_eq!(difference(before, after, now()), Some(expected));
}

#[test]
fn bounds_are_part_of_what_changes() {
    let open = job("0 9 * * *", Bounds::default());
    let ends = Bounds {
        ends_at: Some(at("2026-01-03T09:00:00Z")),
        ..Bounds::default()
    };
    let ended = job("0 9 * * *", ends);
    let all = difference(&open, &ended, now()).unwrap();
    assert_eq!((all.removed.len(), all.added.len()), (NAMED_MAX, 0));
    assert_eq!(all.removed.first(), Some(&Slot(at("2026-01-04T09:00:00Z"))));
    check(
        &job("0 9 * * *", runs_max(3)),
        &job("0 9 * * *", runs_max(5)),
        &[],
        &["2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"],
    );
    check(
        &job("0 9 * * *", runs_max(2)),
        &job("0 9,15 * * *", runs_max(2)),
        &["2026-01-03T09:00:00Z"],
        &["2026-01-01T15:00:00Z"],
    );
}

#[test]
fn other_words_for_the_same_slots_change_nothing() {
    let daily = job("0 0 * * *", Bounds::default());
    assert_eq!(
        difference(&daily, &job("@daily", Bounds::default()), now()),
        None
    );
    assert_eq!(difference(&daily, &daily.clone(), now()), None);
    let once_more = job("@daily", runs_max(u32::MAX));
    assert_eq!(difference(&daily, &once_more, now()), None);
}

#[test]
fn all_slots_of_a_new_job_come() {
    let added = all_added(&job("0 9 * * *", runs_max(2))).added;
    let expected = ["2026-01-02T09:00:00Z", "2026-01-03T09:00:00Z"];
    assert_eq!(added, expected.map(|text| Slot(at(text))));
    assert_eq!(
        all_added(&job("@hourly", Bounds::default())).added.len(),
        NAMED_MAX
    );
}
