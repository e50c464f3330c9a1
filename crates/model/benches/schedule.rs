//! How long a schedule takes to read and to answer: `cargo bench -p model`.

use std::hint::black_box;

use divan::Bencher;
use model::schedule::{Cron, CronOptions, Every, Schedule, Zone};
use model::time::Timestamp;

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
