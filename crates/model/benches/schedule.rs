//! How long a schedule takes to read and to answer: `cargo bench -p model`.

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use model::schedule::{
    Calendar, CalendarName, Calendars, Cron, CronOptions, DateRange, Day, Every, Schedule, Weekly,
    Yearly, Zone,
};
use model::time::{Slot, Timestamp};
use model::{Definition, Job, JobId, Target, TenantId, limits};

fn main() {
    divan::main();
}

/// A moment far from any change of the clocks: 2026-07-01T12:34:56.789Z.
const QUIET: Timestamp = Timestamp::from_millis(1_782_909_296_789);
/// Two hours before the clocks of Berlin jump ahead.
const CHANGE: Timestamp = Timestamp::from_millis(1_774_738_800_000);

const TEXTS: [&str; 8] = [
    "* * * * *",
    "*/15 * * * *",
    "0 9 * * MON-FRI",
    "30 2 * * *",
    "*/10 * * * * *",
    "0 0 L * *",
    "0 12 * * FRI#2",
    "0 0 29 2 *",
];

fn options(zone: &str) -> CronOptions {
    CronOptions {
        zone: Zone::get(zone).ok(),
        ..CronOptions::default()
    }
}

fn cron(text: &str, zone: &str) -> Schedule {
    let cron = Cron::parse(&[text.to_owned()], options(zone));
    cron.map(Schedule::from)
        .unwrap_or(Schedule::from(model::time::Slot(Timestamp::MIN)))
}

#[divan::bench(args = TEXTS)]
fn parse_utc(bencher: Bencher, text: &str) {
    let texts = [text.to_owned()];
    let options = options("UTC");
    bencher.bench_local(|| Cron::parse(black_box(&texts), options.clone()));
}

#[divan::bench(args = TEXTS)]
fn parse_berlin(bencher: Bencher, text: &str) {
    let texts = [text.to_owned()];
    let options = options("Europe/Berlin");
    bencher.bench_local(|| Cron::parse(black_box(&texts), options.clone()));
}

#[divan::bench(args = TEXTS)]
fn next_utc(bencher: Bencher, text: &str) {
    let schedule = cron(text, "UTC");
    bencher.bench_local(|| schedule.next_after(black_box(QUIET)));
}

#[divan::bench(args = TEXTS)]
fn next_berlin(bencher: Bencher, text: &str) {
    let schedule = cron(text, "Europe/Berlin");
    bencher.bench_local(|| schedule.next_after(black_box(QUIET)));
}

#[divan::bench(args = TEXTS)]
fn next_berlin_at_a_change(bencher: Bencher, text: &str) {
    let schedule = cron(text, "Europe/Berlin");
    bencher.bench_local(|| schedule.next_after(black_box(CHANGE)));
}

#[divan::bench(args = TEXTS)]
fn shortest_period(bencher: Bencher, text: &str) {
    let schedule = cron(text, "Europe/Berlin");
    bencher.bench_local(|| black_box(&schedule).shortest_period());
}

#[divan::bench(args = ["90s", "P1D", "P1M"])]
fn next_every(bencher: Bencher, text: &str) {
    let zone = Zone::get("Europe/Berlin").unwrap_or(Zone::utc());
    let every = Every::parse(text, Timestamp::from_millis(1_600_000_000_000), zone).ok();
    bencher.bench_local(|| {
        every
            .as_ref()
            .and_then(|every| every.next_after(black_box(QUIET)))
    });
}

/// 2026 in Berlin, whose clocks change twice.
#[divan::bench(args = ["* * * * * *", "*/15 * * * *", "0 9 * * MON-FRI", "0 0 29 2 *"])]
fn count_a_year(bencher: Bencher, text: &str) {
    let cron = Cron::parse(&[text.to_owned()], options("Europe/Berlin")).ok();
    let first = Timestamp::from_millis(1_767_225_600_000);
    let last = Timestamp::from_millis(1_798_761_599_999);
    bencher.bench_local(|| {
        cron.as_ref()
            .map(|cron| cron.count(black_box(first), black_box(last)))
    });
}

/// How many dates a calendar holds besides weekends; the slot found is a Monday's, or years ahead.
#[divan::bench(args = [10, 100, 1_000])]
fn next_kept(bencher: Bencher, dates: usize) {
    let mut schedule = cron("0 * * * *", "Europe/Berlin");
    let days = (0..dates).filter_map(|n| {
        let text = format!(
            "{}-{:02}-{:02}",
            2_026 + n / 336,
            1 + n / 28 % 12,
            1 + n % 28
        );
        Day::parse(&text).ok()
    });
    if let Ok(name) = CalendarName::new("holidays") {
        let mut calendar = Calendar::new(name, Timestamp::MIN);
        calendar.dates = days.collect();
        calendar.weekly.extend(Weekly::parse("SAT-SUN"));
        schedule.calendars.exclude.push(Arc::new(calendar));
    }
    // A Friday evening, and the middle of the night.
    let friday = Timestamp::from_millis(1_783_115_940_000);
    bencher.bench_local(|| schedule.find_kept(black_box(friday)));
}

/// As many calendars as a job may name, each with as many entries as it may have: of every kind, none of
/// which matters in July 2026.
fn full_calendars(kinds: &str) -> Calendars {
    let numbers = 0..limits::CALENDARS_OF_JOB_MAX;
    let names = numbers.filter_map(|number| CalendarName::new(&format!("full-{number}")).ok());
    let calendars = names.map(|name| {
        let mut calendar = Calendar::new(name, Timestamp::MIN);
        for number in 0..limits::CALENDAR_ENTRIES_MAX {
            // Neither days nor windows touch, or they would be merged.
            let (year, month) = (2_027 + number / 168, 1 + number / 14 % 12);
            let date = format!("{year}-{month:02}-{:02}", 1 + number % 14 * 2);
            let (hour, minute) = (number / 30 % 24, number % 30 * 2);
            let window = format!("SUN {hour:02}:{minute:02}-{hour:02}:{:02}", minute + 1);
            match (kinds, number % 4) {
                ("dates", _) | (_, 0) => calendar.dates.extend(Day::parse(&date)),
                (_, 1) => calendar.weekly.extend(Weekly::parse(&window)),
                (_, 2) => calendar.yearly.extend(Yearly::parse("12-25")),
                (_, _) => {
                    let range = format!("{date}T06:00/{date}T18:00");
                    calendar.ranges.extend(DateRange::parse(&range));
                }
            }
        }
        Arc::new(calendar)
    });
    Calendars {
        exclude: calendars.collect(),
        only: Vec::new(),
    }
}

#[divan::bench(args = ["dates", "mixed"])]
fn check_full_calendars(bencher: Bencher, kinds: &str) {
    let calendars = full_calendars(kinds);
    let zone = Zone::get("Europe/Berlin").unwrap_or(Zone::utc());
    bencher.bench_local(|| calendars.exclusion(black_box(Slot(QUIET)), &zone));
}

/// The first look, which makes them searchable.
#[divan::bench(args = ["dates", "mixed"])]
fn first_check_of_full_calendars(bencher: Bencher, kinds: &str) {
    let calendars = full_calendars(kinds);
    let zone = Zone::get("Europe/Berlin").unwrap_or(Zone::utc());
    let copy = || Calendars {
        exclude: calendars
            .exclude
            .iter()
            .map(|it| Arc::new(Calendar::clone(it)))
            .collect(),
        only: Vec::new(),
    };
    bencher
        .with_inputs(copy)
        .bench_local_values(|calendars| calendars.exclusion(black_box(Slot(QUIET)), &zone));
}

#[divan::bench(args = ["none", "dates", "mixed"])]
fn decide_an_hour_of_missed_seconds(bencher: Bencher, kinds: &str) {
    let mut schedule = cron("* * * * * *", "Europe/Berlin");
    if kinds != "none" {
        schedule.calendars = full_calendars(kinds);
    }
    let Ok(target) = Target::http("http://localhost/") else {
        return;
    };
    let def = Definition::new(schedule, target);
    let id = JobId::new(QUIET, [7; 10]);
    let job = Job::new(id, TenantId::DEFAULT, None, def, QUIET);
    let now = QUIET.plus(std::time::Duration::from_secs(3_600));
    let node = Arc::from("node");
    bencher.bench_local(|| {
        job.next_slot
            .map(|slot| job.decide(black_box(slot), now, &node))
    });
}
