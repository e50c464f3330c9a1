use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn histogram(spans: impl IntoIterator<Item = Duration>) -> Histogram {
    let mut histogram = Histogram::default();
    spans.into_iter().for_each(|span| histogram.observe(span));
    histogram
}

/// Whether a span is what a bucket can know of another.
fn is_about(found: Option<Duration>, truth: Duration) -> bool {
    found.is_some_and(|found| found <= truth * 3 / 2 && truth <= found * 3 / 2)
}

#[test]
fn percentiles_are_within_a_bucket_of_the_truth() {
    let spread = histogram((1..=10_000).map(|at| Duration::from_micros(at * 100)));
    for (share, truth) in [(0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1_000)] {
        assert!(is_about(spread.percentile(share), ms(truth)), "{share}");
    }
    assert_eq!(spread.count(), 10_000);
    assert_eq!(Histogram::default().percentile(0.5), None);
}

#[test]
fn one_span_is_every_percentile_of_itself() {
    for micros in [1, 250, 251, 354, 1_000_000, 67_108_864_000] {
        let span = Duration::from_micros(micros);
        let one = histogram([span]);
        for share in [0.0, 0.5, 0.99, 1.0] {
            let found = one.percentile(share).unwrap();
            assert!(found >= span && found <= span.max(Duration::from_micros(250)) * 3 / 2);
        }
    }
}

#[test]
fn what_is_longer_than_all_buckets_is_in_the_last() {
    let long = histogram([Duration::MAX, ms(1)]);
    assert_eq!(long.count(), 2);
    assert_eq!(long.buckets().last(), Some((57, 1)));
    let most = long.percentile(1.0).unwrap();
    assert_eq!(most, Duration::from_micros(250 << 28));
}

#[test]
fn sums_have_the_percentiles_of_all() {
    let mut one = histogram((0..90).map(|_| ms(2)));
    one.add(&histogram((0..10).map(|_| ms(5_000))));
    assert!(is_about(one.percentile(0.5), ms(2)));
    assert!(is_about(one.percentile(0.9), ms(2)));
    assert!(is_about(one.percentile(0.99), ms(5_000)));
}

#[test]
fn buckets_are_read_back_by_their_numbers() {
    let spread = histogram((0..57).map(|at| Duration::from_micros(1 << at)));
    let mut again = Histogram::default();
    for (bucket, count) in spread.buckets() {
        again.put(bucket, count);
    }
    again.put(58, 1);
    assert_eq!(again, spread, "a bucket that there is not is left out");
}

#[test]
fn everything_is_counted_once_and_sums_add_up() {
    let mut one = Rollup::default();
    for count in [
        Count::Fired(3),
        Count::Skipped(Reason::Missed, 40),
        Count::Skipped(Reason::Overload, 2),
        Count::Ended(RunState::Succeeded, 3),
        Count::Ended(RunState::Dead, 1),
        Count::Ended(RunState::Cancelled, 2),
        Count::Ended(RunState::Skipped, 9),
        Count::Retried,
        Count::Late,
        Count::Lateness(ms(1)),
        Count::Took(ms(80)),
    ] {
        one.count(count);
    }
    let mut both = one.clone();
    both.add(&one);
    assert_eq!((both.fired, both.retried, both.late), (6, 2, 2));
    assert_eq!((both.succeeded, both.dead, both.cancelled), (6, 2, 4));
    let skipped: Vec<_> = both.skipped().collect();
    assert_eq!(skipped, [(Reason::Missed, 80), (Reason::Overload, 4)]);
    assert_eq!(both.skipped_total(), 84);
    assert_eq!(both.skipped_for(Reason::Missed), 80);
    assert_eq!((both.lateness.count(), both.duration.count()), (2, 2));
    assert_eq!(both.success_ratio(), Some(0.75));
    assert_eq!(Rollup::default().success_ratio(), None);
}

#[test]
fn a_step_begins_at_its_multiple_of_utc() {
    let at = Timestamp::parse("2026-03-29T01:47:59.999Z").unwrap();
    let begin = |step: Step| step.begin(at).to_string();
    assert_eq!(begin(Step::Minute), "2026-03-29T01:47:00.000Z");
    assert_eq!(begin(Step::Quarter), "2026-03-29T01:45:00.000Z");
}

#[test]
fn every_reason_has_a_place_of_its_own() {
    for (at, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, at);
    }
}
