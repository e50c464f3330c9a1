use super::*;
use crate::schedule::samples::{calendar, cron, every};
use crate::schedule::{Broken, CronOptions, Dialect, Zone};
use crate::time::Timestamp;

fn check(text: &str, words: &str) {
    let zone = Some(Zone::get("Europe/Berlin").unwrap());
    let options = CronOptions {
        zone,
        ..CronOptions::default()
    };
    let anchor = Timestamp::parse("2026-01-31T08:00:00Z").unwrap();
    let schedule = Schedule::parse_text(text, options, anchor).unwrap();
    assert_eq!(
        schedule.words(),
        format!("{words}, Europe/Berlin"),
        "{text}"
    );
}

#[test]
fn times_of_day_are_described() {
    check("0 9 * * MON-FRI", "at 09:00 on Monday to Friday");
    check("0 9 * * *", "at 09:00 every day");
    check(
        "0,30 9,17 * * *",
        "at 09:00, 09:30, 17:00 and 17:30 every day",
    );
    check("15 30 9 * * *", "at 09:30:15 every day");
    check("* * * * *", "every minute");
    check("*/15 * * * *", "every 15 minutes");
    check("5/15 * * * *", "every 15 minutes from minute 5");
    check("*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:59");
    check("* 2 * * *", "every minute from 02:00 to 02:59");
    check("0 * * * *", "every hour");
    check("30 * * * *", "at 30 minutes past every hour");
    check("1 * * * *", "at 1 minute past every hour");
    check("5,17 * * * *", "at 5 and 17 minutes past every hour");
    check("0 */2 * * *", "every 2 hours");
    check("30 */2 * * *", "at 30 minutes past every 2nd hour");
    check("0 9-17 * * *", "every hour from 09:00 to 17:00");
    check(
        "0 1,2,3,5,7,11,13 * * *",
        "at 01:00, 02:00, 03:00, 05:00, 07:00, 11:00 and 13:00 every day",
    );
    check("*/10 * * * * *", "every 10 seconds");
    check("* * * * * *", "every second");
    check("15 * * * * *", "every minute at second 15");
    check(
        "*/10 */5 2,14 * * *",
        "every 10 seconds in every 5th minute in the hours 2 and 14",
    );
    check(
        "7-9,11 3,7 * * * *",
        "at seconds 7 to 9 and 11 in minutes 3 and 7 of every hour",
    );
    check(
        "10-50/20,13 1-20 3-22 * * *",
        "at seconds 10, 13, 30 and 50 in minutes 1 to 20 from 03:00 to 22:59 every day",
    );
}

#[test]
fn days_months_and_years_are_described() {
    check("0 0 1 * *", "at 00:00 on day 1 of the month");
    check(
        "0 0 1,15,20-25 * *",
        "at 00:00 on days 1, 15 and 20 to 25 of the month",
    );
    check(
        "0 0 */2 * *",
        "at 00:00 on every 2nd day of the month from day 1 to 31",
    );
    check("0 0 L * *", "at 00:00 on the last day of the month");
    check(
        "0 0 L-3 * *",
        "at 00:00 on the 3rd day before the last of the month",
    );
    check(
        "0 0 LW,15W * *",
        "at 00:00 on the working day nearest to day 15 and the last working day of the month",
    );
    check(
        "0 0 * * FRI#2",
        "at 00:00 on the second Friday of the month",
    );
    check("0 0 * * 5L", "at 00:00 on the last Friday of the month");
    check("0 0 * * FRI-MON", "at 00:00 on Monday and Friday to Sunday");
    check(
        "0 0 13 * FRI",
        "at 00:00 on day 13 of the month or on Friday",
    );
    check(
        "0 0 13 * +FRI",
        "at 00:00 on day 13 of the month when it is Friday",
    );
    check(
        "0 0 * 1,6-8 *",
        "at 00:00 every day in January and June to August",
    );
    check(
        "0 0 0 1 1 ? 2030-2040/2",
        "at 00:00 on day 1 of the month in January in every 2nd year from 2030 to 2040",
    );
    check("@yearly", "at 00:00 on day 1 of the month in January");
    check("@hourly", "every hour");
}

#[test]
fn several_expressions_are_described_one_by_one() {
    let texts = ["0 9 * * MON-FRI", "0 12 * * SAT"].map(str::to_owned);
    let cron = Cron::parse(&texts, CronOptions::default()).unwrap();
    assert_eq!(
        Schedule::from(cron).words(),
        "at 09:00 on Monday to Friday; and at 12:00 on Saturday, UTC"
    );
    let quartz = CronOptions {
        dialect: Dialect::Quartz,
        ..CronOptions::default()
    };
    let cron = Cron::parse(&["0 0 12 ? * 2-6".to_owned()], quartz).unwrap();
    assert_eq!(
        Schedule::from(cron).words(),
        "at 12:00 on Monday to Friday, UTC"
    );
}

#[test]
fn intervals_and_one_offs_are_described() {
    check(
        "@every 90s",
        "every 90 seconds, counted from 09:00 on 31 January 2026",
    );
    check(
        "@every 1h",
        "every hour, counted from 09:00 on 31 January 2026",
    );
    check(
        "@every PT1H30M",
        "every 1 hour 30 minutes, counted from 09:00 on 31 January 2026",
    );
    check("@every P1D", "every day at 09:00");
    check("@every P1W", "every week on Saturday at 09:00");
    check(
        "@every P2W",
        "every 2 weeks on Saturday at 09:00, counted from 31 January 2026",
    );
    check("@every P1M", "every month on day 31 at 09:00");
    check("@every P1Y", "every year on 31 January at 09:00");
    check(
        "@every P3M",
        "every 3 months on day 31 at 09:00, counted from 31 January 2026",
    );
    check(
        "@every P1M15D",
        "every 1 month and 15 days at 09:00, counted from 31 January 2026",
    );
    let slot = Slot(Timestamp::parse("2026-12-24T18:00:00Z").unwrap());
    assert_eq!(
        Schedule::from(slot).words(),
        "once at 18:00 on 24 December 2026, UTC"
    );
}

#[test]
fn bounds_are_described_in_the_zone_of_the_schedule() {
    let daily = || cron("0 9 * * *", "Europe/Berlin");
    assert_eq!(
        daily()
            .starting("2026-06-01T07:00:00Z")
            .ending("2026-12-24T17:00:30Z")
            .words(),
        "at 09:00 every day, Europe/Berlin, from 1 June 2026 09:00, until 24 December 2026 18:00:30"
    );
    let mut few = daily();
    few.bounds.runs_max = Some(10);
    assert_eq!(
        few.words(),
        "at 09:00 every day, Europe/Berlin, at most 10 runs"
    );
    few.bounds.runs_max = Some(1);
    assert_eq!(
        few.words(),
        "at 09:00 every day, Europe/Berlin, at most 1 run"
    );
}

#[test]
fn calendars_are_described() {
    let office = || {
        cron("0 * * * *", "UTC")
            .excluding(calendar("holidays", &["12-25"]))
            .excluding(calendar("lunch", &["MON-FRI 12:00-13:00"]))
    };
    assert_eq!(
        office().words(),
        "every hour, UTC, except during holidays and lunch"
    );
    let only = office().only(calendar("office", &["MON-FRI"]));
    assert_eq!(
        only.words(),
        "every hour, UTC, only during office, except during holidays and lunch"
    );
}

#[test]
fn delays_after_runs_are_described() {
    let delay = |text: &str| {
        let mut schedule = every(text, "2026-06-01T00:00:00Z", "Europe/Berlin");
        if let Kind::Every(every) = &mut schedule.kind {
            every.after_completion = true;
        }
        schedule.words()
    };
    assert_eq!(delay("90s"), "90 seconds after the end of each run");
    assert_eq!(delay("1h"), "1 hour after the end of each run");
    assert_eq!(
        delay("P1D"),
        "1 day after the end of each run, Europe/Berlin"
    );
    assert_eq!(
        delay("P1M15D"),
        "1 month and 15 days after the end of each run, Europe/Berlin"
    );
}

#[test]
fn what_cannot_be_read_any_more_says_so() {
    let broken = Broken {
        stored: "{}".to_owned(),
        error: "the zone is gone".to_owned(),
        recurring: true,
    };
    let broken = Schedule::from(Kind::Broken(Arc::new(broken)));
    assert_eq!(broken.words(), "never: it cannot be read any more");
    assert_eq!(broken.notes(Timestamp::MIN)[0], "the zone is gone");
}
