use std::sync::Arc;

use model::Calendar;
use model::schedule::{CronOptions, DateRange, Weekly, Yearly};

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn calendar(name: &str, change: impl FnOnce(&mut Calendar)) -> Arc<Calendar> {
    let name = model::CalendarName::new(name).unwrap();
    let mut calendar = Calendar::new(name, Timestamp::MIN);
    change(&mut calendar);
    Arc::new(calendar)
}

fn weekly(name: &str, text: &str) -> Arc<Calendar> {
    calendar(name, |it| it.weekly.push(Weekly::parse(text).unwrap()))
}

fn schedule(text: &str, zone: &str) -> Schedule {
    let options = CronOptions {
        zone: Some(Zone::get(zone).unwrap()),
        ..CronOptions::default()
    };
    Schedule::parse_text(text, options, at("2026-01-01T00:00:00Z")).unwrap()
}

/// Every slot with who leaves it out, found by checking each.
fn slot_by_slot(schedule: &Schedule, from: Timestamp, until: Timestamp) -> Vec<(Slot, String)> {
    let next = |slot: &Slot| schedule.next_after(slot.0);
    let slots = std::iter::successors(schedule.next_after(from), next);
    let zone = schedule.zone();
    let by = |slot| {
        schedule
            .calendars
            .exclusion(slot, &zone)
            .by
            .unwrap_or_default()
    };
    slots
        .take_while(|slot| slot.0 <= until)
        .map(|slot| (slot, by(slot)))
        .collect()
}

fn walked(schedule: &Schedule, from: Timestamp, until: Timestamp) -> Vec<(Slot, String)> {
    let mut found = Vec::new();
    for part in Walk::new(schedule, from, until) {
        match part {
            Part::Kept(slot) => found.push((slot, String::new())),
            Part::LeftOut { first, end, by } => {
                let stretch = schedule.stretch(first, end);
                let next = |slot: &Slot| schedule.next_after(slot.0);
                let slots = std::iter::successors(Some(first), next);
                let slots: Vec<_> = slots.take_while(|slot| slot.0 <= end).collect();
                assert_eq!(slots.len() as u64, stretch.count);
                assert_eq!(slots.last(), Some(&stretch.last));
                found.extend(slots.into_iter().map(|slot| (slot, by.clone())));
            }
        }
    }
    found
}

#[test]
fn a_walk_finds_what_a_check_of_every_slot_finds() {
    let weekends = weekly("weekends", "SAT-SUN");
    let nights = weekly("nights", "MON-SUN 22:00-06:00");
    let winter = calendar("winter", |it| {
        it.ranges
            .push(DateRange::parse("2026-03-20/2026-03-28T12:00").unwrap());
    });
    let (from, until) = (at("2026-03-18T05:00:00Z"), at("2026-04-08T00:00:00Z"));
    for text in [
        "*/7 * * * *",
        "30 2 * * *",
        "0 9,21 * * MON-FRI",
        "@every 97m",
    ] {
        for zone in ["UTC", "Europe/Berlin", "Asia/Tokyo"] {
            let mut schedule = schedule(text, zone);
            schedule.calendars.exclude = vec![weekends.clone(), nights.clone(), winter.clone()];
            let expected = slot_by_slot(&schedule, from, until);
            assert_eq!(walked(&schedule, from, until), expected, "{text} {zone}");
            schedule.calendars.exclude.clear();
            schedule.calendars.only = vec![nights.clone(), winter.clone()];
            let expected = slot_by_slot(&schedule, from, until);
            assert_eq!(walked(&schedule, from, until), expected, "{text} {zone}");
        }
    }
}

#[test]
fn what_one_calendar_leaves_out_is_one_part_however_many_days() {
    let mut schedule = schedule("0 9 * * *", "UTC");
    schedule.calendars.exclude = vec![weekly("weekdays", "MON-FRI")];
    let (from, until) = (at("2026-03-01T00:00:00Z"), at("2026-03-15T00:00:00Z"));
    let parts: Vec<Part> = Walk::new(&schedule, from, until).collect();
    let kept = |text: &str| Part::Kept(Slot(at(text)));
    let left_out = |first: &str, end: &str| Part::LeftOut {
        first: Slot(at(first)),
        end: at(end),
        by: "weekdays".to_owned(),
    };
    assert_eq!(
        parts,
        [
            kept("2026-03-01T09:00:00Z"),
            left_out("2026-03-02T09:00:00Z", "2026-03-06T23:59:59.999Z"),
            kept("2026-03-07T09:00:00Z"),
            kept("2026-03-08T09:00:00Z"),
            left_out("2026-03-09T09:00:00Z", "2026-03-13T23:59:59.999Z"),
            kept("2026-03-14T09:00:00Z"),
        ]
    );
}

#[test]
fn a_walk_that_finds_nothing_ends_and_says_where() {
    let mut schedule = schedule("0 9 * * *", "UTC");
    let all_year = calendar("all-year", |it| {
        for month in 1..=12 {
            for day in 1..=31 {
                it.yearly
                    .extend(Yearly::parse(&format!("{month:02}-{day:02}")));
            }
        }
    });
    schedule.calendars.exclude = vec![all_year];
    let mut walk = Walk::new(&schedule, at("2026-01-01T00:00:00Z"), Timestamp::MAX);
    assert_eq!(walk.kept().next(), None);
    let stopped = walk.stopped_at().unwrap();
    // One look a day.
    let days = stopped.0.since(at("2026-01-01T00:00:00Z")).as_secs() / 86_400;
    assert_eq!(days, u64::from(limits::CALENDAR_STEPS_MAX));
    let again = Walk::new(&schedule, stopped.0.minus(MILLISECOND), Timestamp::MAX).next();
    assert!(matches!(again, Some(Part::LeftOut { first, .. }) if first == stopped));
}

#[test]
fn what_waits_for_a_run_to_end_waits_for_its_calendars_too() {
    let every = model::schedule::Every::parse("8h", at("2026-03-06T00:00:00Z"), Zone::utc());
    let mut schedule = Schedule::from(every.unwrap().after_completion());
    schedule.calendars.exclude = vec![weekly("weekends", "SAT-SUN")];
    let mut walk = Walk::new(&schedule, at("2026-03-06T12:00:00Z"), Timestamp::MAX);
    let slots: Vec<Slot> = walk.kept().take(3).collect();
    let expected = [
        "2026-03-06T20:00:00Z",
        "2026-03-09T00:00:00Z",
        "2026-03-09T08:00:00Z",
    ];
    assert_eq!(slots, expected.map(|text| Slot(at(text))));
}
