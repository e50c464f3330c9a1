use super::*;
use crate::schedule::reference::Chance;
use crate::schedule::samples::{ZONES, at, calendar, cron, every, zone};
use crate::schedule::{Broken, Cron, CronOptions, DstGap, DstOverlap};

fn explain(schedule: &Schedule, text: &str) -> Explanation {
    schedule.explain(&Point::parse(text).unwrap())
}

/// The steps as lines: "+" for those that hold.
fn lines(explanation: &Explanation) -> Vec<String> {
    let line = |it: &Step| {
        let sign = if it.holds { '+' } else { '-' };
        format!("{sign} {}: {}", it.step, it.says)
    };
    explanation.steps.iter().map(line).collect()
}

fn check(schedule: &Schedule, text: &str, slot: Option<&str>, expected: &[&str]) {
    let found = explain(schedule, text);
    assert_eq!(found.slot, slot.map(|slot| Slot(at(slot))), "{text}");
    assert_eq!(lines(&found), expected, "{text}");
}

#[test]
fn moments_epochs_and_local_times_are_read() {
    let moment = |text: &str| Ok(Point::Moment(at(text)));
    let utc = "2026-03-29T00:30:00Z";
    assert_eq!(Point::parse("2026-03-29T02:30:00+02:00"), moment(utc));
    assert_eq!(Point::parse("1774744200"), moment(utc));
    assert_eq!(Point::parse("1774744200000"), moment(utc));
    let local = Ok(Point::Local(1_774_751_400));
    for text in [
        "2026-03-29T02:30",
        "2026-03-29T02:30:00",
        "2026-03-29 02:30",
        "2026-03-29t02:30",
    ] {
        assert_eq!(Point::parse(text), local, "{text}");
    }
    assert_eq!(
        Point::parse("2026-03-29T02:30:15"),
        Ok(Point::Local(1_774_751_415))
    );
    for text in [
        "",
        "-",
        "tomorrow",
        "2026-03-29",
        "2026-03-29T",
        "2026-03-29T2:30",
        "2026-03-29T24:00",
        "2026-03-29T02:60",
        "2026-03-29T02:30:60",
        "2026-03-29T02:30:",
        "2026-03-29T02:30:00.5",
        "2026-02-30T02:30",
        "2026-03-29T02:30+",
        "1969-12-31T23:59",
        "1969-12-31T23:59:59Z",
        "-5",
        "99999999999999999999",
    ] {
        assert!(Point::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_slot_is_explained_by_its_expression() {
    let office = cron("0,30 9 * * MON-FRI", "Europe/Berlin");
    check(
        &office,
        "2026-06-01T07:30:00Z",
        Some("2026-06-01T07:30:00Z"),
        &[
            "+ zone: 2026-06-01T07:30:00.000Z is 09:30 on 1 June 2026, a Monday, in Europe/Berlin",
            "+ schedule: 0,30 9 * * MON-FRI: every field matches",
        ],
    );
    let found = explain(&office, "2026-06-01T09:30");
    assert_eq!(found.moments, [at("2026-06-01T07:30:00Z")]);
    assert_eq!(
        (found.local.as_str(), found.zone.as_str()),
        ("2026-06-01T09:30:00", "Europe/Berlin")
    );
    assert!(found.kept);
    assert_eq!(
        found.steps[0].says,
        "09:30 on 1 June 2026, a Monday, in Europe/Berlin is 2026-06-01T07:30:00.000Z"
    );
}

#[test]
fn the_first_field_that_says_no_is_named() {
    let no = |text: &str, moment: &str| {
        let found = explain(&cron(text, "UTC"), moment);
        assert_eq!((found.slot, found.kept), (None, false));
        assert!(!found.steps[1].holds);
        let says = found.steps[1].says.clone();
        says.strip_prefix(&format!("{text}: ")).unwrap().to_owned()
    };
    let noon = "2026-06-01T12:15:07Z";
    assert_eq!(no("0,30 * * * *", noon), "minute 15 is not among 0 and 30");
    assert_eq!(no("15 * * * *", noon), "second 7 is not 0");
    assert_eq!(no("* 9-11 * * *", noon), "hour 12 is not among 9 to 11");
    assert_eq!(no("*/2 * * * *", noon), "minute 15 does not match */2");
    assert_eq!(no("0 0 * JAN *", noon), "month June is not January");
    assert_eq!(
        no("0 0 * * SAT,SUN", noon),
        "1 June 2026, a Monday, is not on Saturday and Sunday"
    );
    assert_eq!(
        no("0 0 L * *", noon),
        "1 June 2026, a Monday, is not on the last day of the month"
    );
    assert_eq!(
        no("0 0 13 * FRI", noon),
        "1 June 2026, a Monday, is not on day 13 of the month or on Friday"
    );
    assert_eq!(
        no("0 0 0 1 1 ? 2030-2040/2", noon),
        "the year 2026 is not in every 2nd year from 2030 to 2040"
    );
    assert_eq!(no("@hourly", "2026-06-01T12:15:00Z"), "minute 15 is not 0");
    let between = explain(&cron("* * * * * *", "UTC"), "2026-06-01T12:15:07.250Z");
    assert_eq!(between.local, "2026-06-01T12:15:07.250");
    assert_eq!(
        between.steps[1].says,
        "it lies between two seconds, and slots are whole ones"
    );
}

#[test]
fn every_expression_is_tried_and_the_nearest_slots_are_named() {
    let texts = ["0 9 * * *", "0 12 * * SAT"].map(str::to_owned);
    let both = Schedule::from(Cron::parse(&texts, CronOptions::default()).unwrap());
    check(
        &both,
        "2026-06-05T12:00:00Z",
        None,
        &[
            "+ zone: 2026-06-05T12:00:00.000Z is 12:00 on 5 June 2026, a Friday, in UTC",
            "- schedule: 0 9 * * *: hour 12 is not 9",
            "- schedule: 0 12 * * SAT: 5 June 2026, a Friday, is not on Saturday",
            "- nearest: the slots next to it are 09:00 on 5 June 2026 (2026-06-05T09:00:00.000Z) and \
             09:00 on 6 June 2026 (2026-06-06T09:00:00.000Z)",
        ],
    );
    let saturday = explain(&both, "2026-06-06T12:00:00Z");
    assert!(saturday.slot.is_some() && !saturday.steps[1].holds && saturday.steps[2].holds);
}

#[test]
fn bounds_are_explained() {
    let bounded = cron("0 9 * * *", "Europe/Berlin")
        .starting("2026-06-01T07:00:00Z")
        .ending("2026-06-03T07:00:00Z");
    check(
        &bounded,
        "2026-05-31T07:00:00Z",
        None,
        &[
            "+ zone: 2026-05-31T07:00:00.000Z is 09:00 on 31 May 2026, a Sunday, in Europe/Berlin",
            "- starts_at: the schedule starts only at 09:00 on 1 June 2026",
            "+ ends_at: the schedule ends at 09:00 on 3 June 2026",
            "+ schedule: 0 9 * * *: every field matches",
            "- nearest: the first slot after it is 09:00 on 1 June 2026 (2026-06-01T07:00:00.000Z)",
        ],
    );
    let late = explain(&bounded, "2026-06-04T09:00");
    assert_eq!(late.slot, None);
    assert_eq!(
        lines(&late)[2..],
        [
            "- ends_at: the schedule ended at 09:00 on 3 June 2026",
            "+ schedule: 0 9 * * *: every field matches",
            "- nearest: the last slot before it is 09:00 on 3 June 2026 (2026-06-03T07:00:00.000Z)",
        ]
    );
    assert!(explain(&bounded, "2026-06-03T09:00").slot.is_some());
}

fn strict(text: &str) -> Schedule {
    let options = CronOptions {
        zone: Some(zone("Europe/Berlin")),
        dst_gap: DstGap::Skip,
        dst_overlap: DstOverlap::Both,
        ..CronOptions::default()
    };
    Schedule::from(Cron::parse(&[text.to_owned()], options).unwrap())
}

#[test]
fn a_time_that_does_not_exist_is_made_up_for_or_left_out() {
    let gap = "- zone: 02:30 on 29 March 2026 does not exist in Europe/Berlin: the clocks go from 02:00 to 03:00";
    let fixed = cron("30 2 * * *", "Europe/Berlin");
    let end = "2026-03-29T01:00:00Z";
    check(
        &fixed,
        "2026-03-29T02:30",
        Some(end),
        &[
            gap,
            "+ schedule: 30 2 * * *: every field matches",
            "+ daylight_saving: 02:30 on 29 March 2026 does not exist: what falls into the gap runs once at its end, 03:00",
        ],
    );
    assert_eq!(explain(&fixed, "2026-03-29T02:30").moments, []);
    check(
        &fixed,
        end,
        Some(end),
        &[
            "+ zone: 2026-03-29T01:00:00.000Z is 03:00 on 29 March 2026, a Sunday, in Europe/Berlin",
            "- schedule: 30 2 * * *: hour 3 is not 2",
            "+ daylight_saving: 02:30 on 29 March 2026 does not exist: what falls into the gap runs once at its end, 03:00",
        ],
    );
    let skipped = explain(&strict("30 2 * * *"), "2026-03-29T02:30");
    assert_eq!(skipped.slot, None);
    assert_eq!(
        lines(&skipped)[2],
        "- daylight_saving: 02:30 on 29 March 2026 does not exist and is left out"
    );
    let elapsed = explain(&cron("*/30 2 * * *", "Europe/Berlin"), "2026-03-29T02:30");
    assert_eq!(
        lines(&elapsed)[2],
        "- daylight_saving: 02:30 on 29 March 2026 does not exist and what follows elapsed time is not made up for"
    );
    let other = explain(&fixed, "2026-03-29T02:45");
    assert_eq!((other.slot, other.steps.len()), (None, 3));
    assert_eq!(
        lines(&other)[1],
        "- schedule: 30 2 * * *: minute 45 is not 30"
    );
    let apia = explain(&cron("0 9 * * *", "Pacific/Apia"), "2011-12-30T09:00");
    assert_eq!(apia.slot, Some(Slot(at("2011-12-30T10:00:00Z"))));
    assert_eq!(
        apia.steps[0].says,
        "09:00 on 30 December 2011 does not exist in Pacific/Apia: \
         the clocks go from 00:00 to 00:00 on 31 December 2011"
    );
}

#[test]
fn a_time_that_comes_twice_runs_once_or_twice() {
    let fixed = cron("30 2 * * *", "Europe/Berlin");
    let (first, second) = ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z");
    check(
        &fixed,
        "2026-10-25T02:30",
        Some(first),
        &[
            "+ zone: 02:30 on 25 October 2026 comes twice in Europe/Berlin: 2026-10-25T00:30:00.000Z and 2026-10-25T01:30:00.000Z",
            "+ schedule: 30 2 * * *: every field matches",
            "+ daylight_saving: 02:30 comes twice on 25 October 2026, and this is the first time: it runs now only",
        ],
    );
    let again = explain(&fixed, second);
    assert_eq!(again.slot, None);
    assert_eq!(
        lines(&again)[2],
        "- daylight_saving: 02:30 comes twice on 25 October 2026, and this is the second time: it runs the first time only"
    );
    for both in [strict("30 2 * * *"), cron("*/30 * * * *", "Europe/Berlin")] {
        for moment in [first, second] {
            let found = explain(&both, moment);
            assert_eq!(found.slot, Some(Slot(at(moment))));
            assert_eq!(
                lines(&found)[2],
                "+ daylight_saving: 02:30 comes twice on 25 October 2026: it runs both times"
            );
        }
    }
}

#[test]
fn the_slot_at_the_end_of_a_gap_is_next_to_every_time_within_it() {
    let nearest = |schedule: &Schedule, moment: &str| {
        let mut steps = explain(schedule, moment).steps.into_iter();
        steps.find(|it| it.step == "nearest").unwrap().says
    };
    let fixed = cron("30 2 * * *", "Europe/Berlin");
    let around = "the slots next to it are 02:30 on 27 March 2027 (2027-03-27T01:30:00.000Z) and \
                  03:00 on 28 March 2027 (2027-03-28T01:00:00.000Z)";
    assert_eq!(nearest(&fixed, "2027-03-28T02:31"), around);
    assert_eq!(nearest(&fixed, "2027-03-28T02:00"), around);
    // Where it is none, the next one is named.
    let later = nearest(&fixed, "2027-03-28T03:00:01");
    assert!(
        later.ends_with("02:30 on 29 March 2027 (2027-03-29T00:30:00.000Z)"),
        "{later}"
    );
}

#[test]
fn a_repeated_hour_begins_and_ends_on_the_minute() {
    let passes = |text: &str, moment: &str| {
        let found = explain(&cron(text, "Europe/Berlin"), moment);
        let mut steps = found.steps.iter();
        (
            found.slot.is_some(),
            steps.any(|it| it.step == DAYLIGHT_SAVING),
        )
    };
    assert_eq!(passes("59 1 * * *", "2026-10-24T23:59:00Z"), (true, false));
    assert_eq!(passes("0 2 * * *", "2026-10-25T00:00:00Z"), (true, true));
    assert_eq!(passes("59 2 * * *", "2026-10-25T00:59:00Z"), (true, true));
    assert_eq!(passes("0 2 * * *", "2026-10-25T01:00:00Z"), (false, true));
    assert_eq!(passes("59 2 * * *", "2026-10-25T01:59:00Z"), (false, true));
    assert_eq!(passes("0 3 * * *", "2026-10-25T02:00:00Z"), (true, false));
}

#[test]
fn intervals_say_how_far_they_have_come() {
    let often = every("15m", "2026-06-01T09:00:00Z", "UTC");
    let says = |schedule: &Schedule, text: &str| explain(schedule, text).steps[1].says.clone();
    assert_eq!(
        says(&often, "2026-06-01T08:59:00Z"),
        "counting begins later, at 09:00 on 1 June 2026"
    );
    assert_eq!(
        says(&often, "2026-06-01T09:00:00Z"),
        "counting begins here, at 09:00 on 1 June 2026"
    );
    assert_eq!(
        says(&often, "2026-06-02T09:00:00Z"),
        "it is 96 times 15 minutes after 09:00 on 1 June 2026"
    );
    check(
        &often,
        "2026-06-01T10:07:00Z",
        None,
        &[
            "+ zone: 2026-06-01T10:07:00.000Z is 10:07 on 1 June 2026, a Monday, in UTC",
            "- schedule: it is 1 hour 7 minutes after 09:00 on 1 June 2026, no multiple of 15 minutes",
            "- nearest: the slots next to it are 10:00 on 1 June 2026 (2026-06-01T10:00:00.000Z) and \
             10:15 on 1 June 2026 (2026-06-01T10:15:00.000Z)",
        ],
    );
    let monthly = every("P1M", "2026-01-31T09:00:00Z", "UTC");
    assert_eq!(
        says(&monthly, "2026-02-28T09:00:00Z"),
        "it is 1 month after 09:00 on 31 January 2026"
    );
    assert_eq!(
        says(&monthly, "2026-03-28T09:00:00Z"),
        "it is no multiple of 1 month after 09:00 on 31 January 2026"
    );
}

#[test]
fn intervals_name_changes_of_the_clocks_too() {
    let daily = every("P1D", "2026-03-01T01:30:00Z", "Europe/Berlin");
    let found = explain(&daily, "2026-03-29T02:30");
    assert_eq!(found.slot, Some(Slot(at("2026-03-29T01:00:00Z"))));
    assert_eq!(
        lines(&found)[1],
        "+ daylight_saving: 02:30 on 29 March 2026 does not exist: what falls into the gap runs once at its end, 03:00"
    );
    assert_eq!(
        lines(&explain(&daily, "2026-03-29T01:00:00Z"))[2],
        lines(&found)[1]
    );
    assert_eq!(explain(&daily, "2026-03-29T02:15").slot, None);
    let twice = explain(&daily, "2026-10-25T02:30");
    assert_eq!(twice.slot, Some(Slot(at("2026-10-25T00:30:00Z"))));
    assert!(twice.steps[2].holds);
    let again = explain(&daily, "2026-10-25T01:30:00Z");
    assert_eq!((again.slot, again.steps[2].holds), (None, false));
    let hours = every("1h", "2026-03-01T00:00:00Z", "Europe/Berlin");
    assert_eq!(
        lines(&explain(&hours, "2026-03-29T02:00"))[1],
        "- schedule: every 1 hour is counted in elapsed time: nothing is made up for"
    );
}

#[test]
fn one_offs_delays_and_broken_schedules_are_explained() {
    let once = Schedule::from(Slot(at("2026-12-24T18:00:00Z")));
    let found = explain(&once, "2026-12-24T18:00");
    assert_eq!(
        found.steps[1].says,
        "it is due once at 18:00 on 24 December 2026, UTC"
    );
    assert!(found.slot.is_some() && found.steps[1].holds);
    assert!(explain(&once, "2026-12-24T18:01").slot.is_none());
    let mut delay = every("1h", "2026-06-01T00:00:00Z", "UTC");
    if let Kind::Every(every) = &mut delay.kind {
        every.after_completion = true;
    }
    let found = explain(&delay, "2026-06-01T01:00:00Z");
    assert_eq!(
        found.steps[1].says,
        "each slot is set by the end of a run, 1 hour after it"
    );
    let broken = Schedule::from(Kind::Broken(Arc::new(Broken {
        stored: "{}".to_owned(),
        error: "the zone is gone".to_owned(),
        recurring: true,
    })));
    let found = explain(&broken, "2026-06-01T01:00");
    assert_eq!(lines(&found)[1..], ["- schedule: the zone is gone"]);
}

#[test]
fn calendars_say_who_leaves_a_slot_out_or_keeps_it() {
    let last = |schedule: &Schedule, text: &str| {
        let found = explain(schedule, text);
        assert!(found.slot.is_some());
        let step = found.steps.last().unwrap();
        assert_eq!((step.step, step.holds), ("calendars", found.kept));
        step.says.clone()
    };
    let daily = || cron("0 12 * * *", "UTC");
    let excluding = daily()
        .excluding(calendar("holidays", &["12-25"]))
        .excluding(calendar("weekends", &["SAT-SUN"]));
    assert_eq!(
        last(&excluding, "2026-12-25T12:00"),
        "left out: it is within holidays"
    );
    assert_eq!(
        last(&excluding, "2026-12-24T12:00"),
        "kept: it is not within holidays or weekends"
    );
    let only = daily()
        .only(calendar("office", &["MON-FRI"]))
        .only(calendar("december", &["2026-12-01/2026-12-31"]));
    assert_eq!(
        last(&only, "2026-12-24T12:00"),
        "kept: it is within office and december"
    );
    assert_eq!(
        last(&only, "2026-11-28T12:00"),
        "left out: it is not within office or december"
    );
}

/// The steps must come to the same as the answer.
fn agrees(schedule: &Schedule, moment: i64) {
    let moment = Timestamp::from_millis(moment);
    let point = Point::Moment(moment);
    let found = schedule.explain(&point);
    let before = Timestamp::from_millis(moment.as_millis() - 1);
    let is_slot = schedule.next_after(before) == Some(Slot(moment));
    let context = || format!("{schedule:?} at {moment}: {:#?}", found.steps);
    assert_eq!(found.slot, is_slot.then_some(Slot(moment)), "{}", context());
    let mut due = false;
    let mut bounded = true;
    let mut last = false;
    for step in &found.steps {
        match step.step {
            "starts_at" | "ends_at" => bounded &= step.holds,
            "schedule" => {
                due |= last;
                last = step.holds;
            }
            DAYLIGHT_SAVING => last = step.holds,
            _ => {}
        }
    }
    assert_eq!((due | last) && bounded, is_slot, "{}", context());
    // By the clock on the wall it is found again.
    if moment.as_millis() % 1_000 == 0 {
        let local = local_of(moment, &schedule.zone());
        let by_local = schedule.explain(&Point::Local(local));
        assert!(by_local.moments.contains(&moment), "{}", context());
        assert_eq!(by_local.local, found.local, "{}", context());
        let first = by_local.moments[0];
        if is_slot && first == moment {
            assert_eq!(by_local.slot, Some(Slot(moment)), "{}", context());
        }
    }
}

fn random(chance: &mut Chance, zone_name: &str) -> Schedule {
    let minutes = ["0", "30", "*", "*/15", "0,30", "15-45/10", "59"];
    let hours = ["*", "0", "1", "2", "3", "23", "1-3", "22-2", "*/2", "0-23"];
    let text = format!(
        "{} {} * * {}",
        chance.pick(&minutes),
        chance.pick(&hours),
        chance.pick(&["*", "*", "6-1"])
    );
    let options = CronOptions {
        zone: Some(zone(zone_name)),
        dst_gap: [DstGap::RunAfter, DstGap::Skip][chance.below(2) as usize],
        dst_overlap: [DstOverlap::First, DstOverlap::Both][chance.below(2) as usize],
        ..CronOptions::default()
    };
    let mut texts = vec![text];
    if chance.below(3) == 0 {
        texts.push("15 2 * * *".to_owned());
    }
    match chance.below(4) {
        0 => {
            let anchor = jiff::Timestamp::from_second(
                1_300_000_000 + chance.below(86_400) as i64 / 900 * 900,
            );
            let period = chance.pick(&["P1D", "30m", "P2D", "PT6H"]);
            every(period, &anchor.unwrap().to_string(), zone_name)
        }
        _ => Schedule::from(Cron::parse(&texts, options).unwrap()),
    }
}

#[test]
fn explanations_agree_with_the_slots_around_changes_of_the_clocks() {
    let mut chance = Chance(31);
    for name in ZONES {
        let zone = zone(name);
        let shifts = std::iter::successors(zone.shift_after(1_300_000_000), |shift| {
            zone.shift_after(shift.at)
        });
        let shifts = shifts.take_while(|shift| shift.at < 1_850_000_000);
        for shift in shifts.step_by(2) {
            let mut schedule = random(&mut chance, name);
            let bound = |chance: &mut Chance| {
                let near = (shift.at - 7_200) * 1_000 + chance.below(14_400_000) as i64;
                (chance.below(5) == 0).then(|| Timestamp::from_millis(near))
            };
            schedule.bounds.starts_at = bound(&mut chance);
            schedule.bounds.ends_at = bound(&mut chance);
            for quarter in -10..10 {
                agrees(&schedule, (shift.at + quarter * 900) * 1_000);
            }
            agrees(&schedule, shift.at * 1_000 + 1);
            for _ in 0..5 {
                agrees(
                    &schedule,
                    (shift.at - 9_000 + chance.below(18_000) as i64) * 1_000,
                );
            }
        }
    }
}

#[test]
fn local_times_come_as_often_as_jiff_says() {
    use jiff::tz::AmbiguousOffset;
    for name in ZONES {
        let (zone, time_zone) = (zone(name), crate::schedule::reference::time_zone(name));
        let shifts = std::iter::successors(zone.shift_after(1_300_000_000), |shift| {
            zone.shift_after(shift.at)
        });
        for shift in shifts.take_while(|shift| shift.at < 1_850_000_000) {
            for step in -120..120 {
                let local = shift.at + shift.before + step * 900;
                let civil = jiff::Timestamp::from_second(local).unwrap();
                let civil = jiff::tz::TimeZone::UTC.to_datetime(civil);
                let expected = match time_zone.to_ambiguous_timestamp(civil).offset() {
                    AmbiguousOffset::Unambiguous { .. } => 1,
                    AmbiguousOffset::Gap { .. } => 0,
                    AmbiguousOffset::Fold { .. } => 2,
                };
                let point = Point::Local(local);
                let place = Place::of(&point, &zone);
                assert_eq!(place.moments.len(), expected, "{name} {civil}");
                assert_eq!(iso(place.local, 0), civil.to_string(), "{name} {civil}");
                assert_eq!(place.gap.is_some(), expected == 0);
                assert_eq!(place.step(&point, &zone).holds, expected > 0);
            }
        }
    }
}
