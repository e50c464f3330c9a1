use proptest::prelude::*;

use super::*;

fn check(text: &str, millis: u64) {
    assert_eq!(
        parse_span(text),
        Ok(Duration::from_millis(millis)),
        "{text}"
    );
}

#[test]
fn plain_durations_are_read() {
    check("90s", 90_000);
    check("15m", 900_000);
    check("6h", 21_600_000);
    check("1h30m", 5_400_000);
    check("500ms", 500);
    check("1s500ms", 1_500);
    check("2d", 172_800_000);
    check("1w", 604_800_000);
    check("1w2d3h4m5s6ms", 788_645_006);
    check("1.5s", 1_500);
    check("0.5h", 1_800_000);
    check("1h0.5m", 3_630_000);
    check("0s", 0);
    check(" 10s ", 10_000);
    check("36525d", 3_155_760_000_000);
}

#[test]
fn iso_durations_are_read() {
    check("PT15M", 900_000);
    check("PT1H30M", 5_400_000);
    check("PT0.5S", 500);
    check("PT1,25S", 1_250);
    check("P1D", 86_400_000);
    check("P1DT12H", 129_600_000);
    check("P2W", 1_209_600_000);
    check("pt90s", 90_000);
}

#[test]
fn what_is_no_duration_is_refused_with_the_reason() {
    let refused = |text: &str| parse_span(text).unwrap_err().to_string();
    assert_eq!(
        refused(""),
        "the duration is empty: write 90s, 15m, 1h30m, 500ms, 2d or PT15M"
    );
    assert_eq!(refused("90"), "\"90\" has no unit: write 90s, 90m or 90ms");
    assert_eq!(refused("-5s"), "\"-5s\" is negative: a duration cannot be");
    assert_eq!(
        refused("PT-5S"),
        "\"PT-5S\" is negative: a duration cannot be"
    );
    assert_eq!(refused("0.5ms"), "\"0.5ms\" is finer than a millisecond");
    assert_eq!(
        refused("1.0005s"),
        "\"1.0005s\" is finer than a millisecond"
    );
    assert_eq!(
        refused("99999999999999999999s"),
        "\"99999999999999999999s\" is longer than 100 years"
    );
    assert_eq!(refused("36526d"), "\"36526d\" is longer than 100 years");
    assert_eq!(
        refused("18446744073709551615w"),
        "\"18446744073709551615w\" is longer than 100 years"
    );
    assert_eq!(
        refused("P1M"),
        "\"P1M\" has months or years, whose length differs: write days, hours or minutes"
    );
    for text in [
        "s", "5x", "1h 30m", "30m1h", "1s1s", "1.5h30m", "1.", ".5s", "P", "PT", "P1", "PT5",
        "P1H", "P1DT", "PT1S1M", "P1.5D", "PT1.5M1S", "P1D1D", "+5s", "1_000s", "５s", "1é", "Pé",
        "P1é", "1h½m", "5S", "1e3s",
    ] {
        assert!(parse_span(text).is_err(), "{text}");
    }
}

#[test]
fn durations_print_in_their_short_form() {
    let check = |millis: u64, text: &str| {
        assert_eq!(format_span(Duration::from_millis(millis)), text);
        check(text, millis);
    };
    check(0, "0s");
    check(1, "1ms");
    check(1_500, "1500ms");
    check(1_000, "1s");
    check(90_000, "90s");
    check(120_000, "2m");
    check(150_000, "2m30s");
    check(900_000, "15m");
    check(5_400_000, "1h30m");
    check(86_400_000, "1d");
    check(604_800_000, "1w");
    check(864_000_000, "10d");
    check(5_400_500, "1h30m500ms");
}

proptest! {
    #[test]
    fn every_duration_reads_back_as_it_was_printed(millis in 0..=MILLIS_MAX) {
        let span = Duration::from_millis(millis);
        prop_assert_eq!(parse_span(&format_span(span)), Ok(span));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "[PpTtYMWDHS0-9.,msdhw +-]{0,24}|\\PC{0,12}") {
        if let Ok(span) = parse_span(&text) {
            prop_assert_eq!(parse_span(&format_span(span)), Ok(span));
        }
    }
}
