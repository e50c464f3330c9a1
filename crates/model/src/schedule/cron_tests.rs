use super::*;

fn options(zone: &str) -> CronOptions {
    CronOptions {
        zone: Some(Zone::get(zone).unwrap()),
        hash: 4_711,
        ..CronOptions::default()
    }
}

fn parse(text: &str, options: CronOptions) -> Result<Cron, ScheduleError> {
    Cron::parse(&[text.to_owned()], options)
}

/// The next slots, without their seconds if these are 0.
fn slots(cron: &Cron, from: &str, count: usize) -> String {
    let from = Timestamp::parse(from).unwrap();
    let slots = std::iter::successors(cron.next_after(from), |slot| cron.next_after(slot.0));
    let shown = slots
        .take(count)
        .map(|slot| slot.to_string().replace(".000Z", ""));
    // Seconds are shown when there are any.
    shown
        .map(|text| text.strip_suffix(":00").unwrap_or(&text).to_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The next slots after Wednesday, 2025-01-01T00:00:00Z, in UTC.
fn check(text: &str, expected: &str) {
    let count = expected.split(' ').count();
    let cron = parse(text, options("UTC")).unwrap();
    assert_eq!(
        slots(&cron, "2025-01-01T00:00:00Z", count),
        expected,
        "{text}"
    );
}

fn refused(text: &str) -> String {
    parse(text, options("UTC")).unwrap_err().to_string()
}

#[test]
fn five_six_and_seven_fields_are_read() {
    check("30 9 * * *", "2025-01-01T09:30 2025-01-02T09:30");
    check("15 30 9 * * *", "2025-01-01T09:30:15 2025-01-02T09:30:15");
    check(
        "0 30 9 1 1 * 2026,2028",
        "2026-01-01T09:30 2028-01-01T09:30",
    );
    check(
        "0 0 0 1 1 ? 2030/3",
        "2030-01-01T00:00 2033-01-01T00:00 2036-01-01T00:00",
    );
    check("0 0 0 1 1 ? */100", "2070-01-01T00:00 2170-01-01T00:00");
    check("  30\t9 *  * * ", "2025-01-01T09:30");
    check("00 09 05 01 *", "2025-01-05T09:00");
}

#[test]
fn lists_ranges_steps_and_names_are_read() {
    check(
        "0,15,30-32 0 * * *",
        "2025-01-01T00:15 2025-01-01T00:30 2025-01-01T00:31",
    );
    check(
        "*/20 0 * * *",
        "2025-01-01T00:20 2025-01-01T00:40 2025-01-02T00:00",
    );
    check(
        "5/20 0 * * *",
        "2025-01-01T00:05 2025-01-01T00:25 2025-01-01T00:45",
    );
    check(
        "10-30/15 0 * * *",
        "2025-01-01T00:10 2025-01-01T00:25 2025-01-02T00:10",
    );
    check("*/90 * * * *", "2025-01-01T01:00 2025-01-01T02:00");
    check("0 0 1 feb,AUG *", "2025-02-01T00:00 2025-08-01T00:00");
    check(
        "0 0 * * mon-Wed",
        "2025-01-06T00:00 2025-01-07T00:00 2025-01-08T00:00",
    );
    check(
        "0 0 * * 1-FRI/2",
        "2025-01-03T00:00 2025-01-06T00:00 2025-01-08T00:00",
    );
    check("2-2 0 * * *", "2025-01-01T00:02 2025-01-02T00:02");
    check("0 0 ? * *", "2025-01-02T00:00");
    check("0 0 1 JAN/3 ?", "2025-04-01T00:00 2025-07-01T00:00");
}

#[test]
fn ranges_wrap_around() {
    check(
        "0 22-1 * * *",
        "2025-01-01T01:00 2025-01-01T22:00 2025-01-01T23:00 2025-01-02T00:00",
    );
    check(
        "0 22-2/2 * * *",
        "2025-01-01T02:00 2025-01-01T22:00 2025-01-02T00:00",
    );
    check(
        "0 0 1 NOV-JAN *",
        "2025-11-01T00:00 2025-12-01T00:00 2026-01-01T00:00",
    );
    check(
        "0 0 30-2 * *",
        "2025-01-02T00:00 2025-01-30T00:00 2025-01-31T00:00",
    );
    check(
        "0 0 * * FRI-MON",
        "2025-01-03T00:00 2025-01-04T00:00 2025-01-05T00:00 2025-01-06T00:00 2025-01-10T00:00",
    );
}

#[test]
fn sunday_is_0_and_7() {
    let sundays = "2025-01-05T00:00 2025-01-12T00:00";
    for text in ["0", "7", "SUN", "7-7", "0-0", "SUN-SUN", "7/2", "0,7"] {
        check(&format!("0 0 * * {text}"), sundays);
    }
    check(
        "0 0 * * 5-7",
        "2025-01-03T00:00 2025-01-04T00:00 2025-01-05T00:00 2025-01-10T00:00",
    );
    check(
        "0 0 * * 7-1",
        "2025-01-05T00:00 2025-01-06T00:00 2025-01-12T00:00",
    );
    check(
        "0 0 * * 6-1",
        "2025-01-04T00:00 2025-01-05T00:00 2025-01-06T00:00 2025-01-11T00:00",
    );
    check(
        "0 0 * * 1-7/3",
        "2025-01-02T00:00 2025-01-05T00:00 2025-01-06T00:00",
    );
    // Every weekday counts as a restriction, so that the 1st adds nothing and every day matches.
    check("0 0 1 * 0-7", "2025-01-02T00:00 2025-01-03T00:00");
}

#[test]
fn days_may_be_counted_from_the_end_or_to_working_days() {
    check(
        "0 0 L * *",
        "2025-01-31T00:00 2025-02-28T00:00 2025-03-31T00:00",
    );
    check("0 0 L-3 * *", "2025-01-28T00:00 2025-02-25T00:00");
    check(
        "0 0 LW * *",
        "2025-01-31T00:00 2025-02-28T00:00 2025-03-31T00:00 2025-04-30T00:00 2025-05-30T00:00",
    );
    check("0 0 L-1W 5 *", "2025-05-30T00:00");
    check(
        "0 0 15W * *",
        "2025-01-15T00:00 2025-02-14T00:00 2025-03-14T00:00",
    );
    check("0 0 1W * *", "2025-02-03T00:00 2025-03-03T00:00");
    check(
        "0 0 31W * *",
        "2025-01-31T00:00 2025-03-31T00:00 2025-05-30T00:00",
    );
    check(
        "0 0 1,l,15w * *",
        "2025-01-15T00:00 2025-01-31T00:00 2025-02-01T00:00",
    );
    check("0 0 * * 5L", "2025-01-31T00:00 2025-02-28T00:00");
    check("0 0 * * fril", "2025-01-31T00:00");
    check("0 0 * * FRI#2", "2025-01-10T00:00 2025-02-14T00:00");
    check("0 0 * * 5#5", "2025-01-31T00:00 2025-05-30T00:00");
    check("0 0 * * 7#L", "2025-01-26T00:00 2025-02-23T00:00");
    check("0 0 * * TUE#1,SAT#L", "2025-01-07T00:00 2025-01-25T00:00");
}

#[test]
fn either_day_field_is_enough_unless_both_are_required() {
    check(
        "0 0 13 * FRI",
        "2025-01-03T00:00 2025-01-10T00:00 2025-01-13T00:00",
    );
    check("0 0 13 * +FRI", "2025-06-13T00:00 2026-02-13T00:00");
    check(
        "0 0 */10 * MON",
        "2025-01-06T00:00 2025-01-11T00:00 2025-01-13T00:00",
    );
    check("0 0 8-14 * +MON", "2025-01-13T00:00 2025-02-10T00:00");
    check("0 0 * * +MON", "2025-01-06T00:00");
}

#[test]
fn macros_stand_for_expressions() {
    for (text, next) in [
        ("@yearly", "2026-01-01T00:00"),
        ("@annually", "2026-01-01T00:00"),
        ("@monthly", "2025-02-01T00:00"),
        ("@weekly", "2025-01-05T00:00"),
        ("@daily", "2025-01-02T00:00"),
        ("@Midnight", "2025-01-02T00:00"),
        ("@HOURLY", "2025-01-01T01:00"),
        ("@minutely", "2025-01-01T00:01"),
    ] {
        check(text, next);
        let quartz = CronOptions {
            dialect: Dialect::Quartz,
            ..options("UTC")
        };
        assert_eq!(
            slots(&parse(text, quartz).unwrap(), "2025-01-01T00:00:00Z", 1),
            next
        );
    }
}

#[test]
fn quartz_counts_from_sunday_as_1_and_wants_a_question_mark() {
    let quartz = || CronOptions {
        dialect: Dialect::Quartz,
        ..options("UTC")
    };
    let check = |text: &str, next: &str| {
        let cron = parse(text, quartz()).unwrap();
        assert_eq!(slots(&cron, "2025-01-01T00:00:00Z", 1), next, "{text}");
    };
    check("0 0 12 ? * 1", "2025-01-05T12:00");
    check("0 0 12 ? * 2-6", "2025-01-01T12:00");
    check("0 0 12 ? * 7", "2025-01-04T12:00");
    check("0 0 12 ? * SAT-SUN", "2025-01-04T12:00");
    check("0 0 12 ? * 6#3", "2025-01-17T12:00");
    check("0 0 12 ? * 6L", "2025-01-31T12:00");
    check("0 0 12 ? * L", "2025-01-04T12:00");
    check("0 0 12 L-2 * ?", "2025-01-29T12:00");
    check("0 0 12 LW * ? 2026", "2026-01-30T12:00");
    let refused = |text: &str| parse(text, quartz()).unwrap_err().to_string();
    let question =
        "exactly one of day of the month and day of the week must be ? in the Quartz dialect";
    assert_eq!(refused("0 0 12 * * *"), question);
    assert_eq!(refused("0 0 12 ? * ?"), question);
    assert_eq!(
        refused("0 0 12 ? * 0"),
        "day of the week 0 is out of range 1-7"
    );
    assert_eq!(
        refused("0 12 ? * 1"),
        "5 fields are given: Quartz has 6 (second minute hour day month weekday) or 7 (year last)"
    );
    assert!(refused("0 0 12 13 * +FRI").contains('?'));
}

#[test]
fn h_is_one_number_for_each_job_and_field() {
    let fields = |text: &str, hash: u64| {
        let cron = parse(
            text,
            CronOptions {
                hash,
                ..options("UTC")
            },
        )
        .unwrap();
        let rule = cron.rules()[0].clone();
        (
            rule.seconds,
            rule.minutes,
            rule.hours,
            rule.days,
            rule.months,
        )
    };
    let mut minutes = 0;
    for hash in 0..500 {
        let (second, minute, hour, days, month) = fields("H H H H H H", hash);
        assert_eq!(
            [second, minute, hour.into(), days.dates.into(), month.into()].map(u64::count_ones),
            [1; 5]
        );
        assert!(days.dates < 1 << 29 && days.weekdays.count_ones() == 1);
        assert_eq!(fields("H H H H H H", hash), fields("h h h h h h", hash));
        let (_, minute_low, hours, ..) = fields("H(10-29) H/6 * * *", hash);
        assert!(
            minute_low.trailing_zeros() >= 10
                && minute_low < 1 << 30
                && minute_low.count_ones() == 1
        );
        assert_eq!(hours.count_ones(), 4);
        let (_, steps, ..) = fields("H/15 * * * *", hash);
        let first = steps.trailing_zeros();
        assert!(
            first < 15 && steps == 0b1_000000000000001_000000000000001_000000000000001 << first
        );
        assert_eq!(fields("H(0-29)/10 * * * *", hash).1.count_ones(), 3);
        assert_eq!(fields("H/90 * * * *", hash).1.count_ones(), 1);
        minutes |= minute;
    }
    assert_eq!(minutes, (1 << 60) - 1, "every minute is some job's");
    assert_eq!(
        fields("H H * * *", 4_711).1.trailing_zeros(),
        28,
        "it may never change"
    );
    for text in [
        "H(29-0) * * * *",
        "H(0) * * * *",
        "H(0-75) * * * *",
        "HH * * * *",
        "H-5 * * * *",
        "H/0 * * * *",
        "0 0 0 1 1 ? H",
    ] {
        assert!(parse(text, options("UTC")).is_err(), "{text}");
    }
}

#[test]
fn a_zone_in_front_becomes_the_zone() {
    let none = || CronOptions {
        zone: None,
        ..options("UTC")
    };
    let cron = parse("CRON_TZ=Asia/Tokyo 0 9 * * *", none()).unwrap();
    assert_eq!(cron.zone().name(), "Asia/Tokyo");
    assert_eq!(cron.texts(), ["0 9 * * *"]);
    assert_eq!(slots(&cron, "2025-01-01T01:00:00Z", 1), "2025-01-02T00:00");
    assert_eq!(
        parse("TZ=asia/tokyo @daily", none()).unwrap().zone().name(),
        "Asia/Tokyo"
    );
    assert_eq!(parse("0 9 * * *", none()).unwrap().zone(), &Zone::utc());
    assert!(parse("CRON_TZ=Asia/Tokyo 0 9 * * *", options("Asia/Tokyo")).is_ok());
    assert_eq!(
        parse("CRON_TZ=Asia/Tokyo 0 9 * * *", options("Europe/Berlin"))
            .unwrap_err()
            .to_string(),
        "the expression says Asia/Tokyo and the schedule says Europe/Berlin: give the time zone once"
    );
    let both = |one: &str, other: &str| Cron::parse(&[one.to_owned(), other.to_owned()], none());
    assert!(both("TZ=UTC 0 9 * * *", "TZ=UTC 0 10 * * *").is_ok());
    assert!(matches!(
        both("TZ=UTC 0 9 * * *", "0 10 * * *"),
        Err(ScheduleError::ZoneMixed)
    ));
    assert!(matches!(
        both("0 9 * * *", "TZ=UTC 0 10 * * *"),
        Err(ScheduleError::ZoneMixed)
    ));
    let conflict = both("TZ=UTC 0 9 * * *", "TZ=Asia/Tokyo 0 10 * * *");
    assert!(matches!(conflict, Err(ScheduleError::ZoneConflict { .. })));
    assert!(matches!(
        parse("TZ=Mars/Base 0 9 * * *", none()),
        Err(ScheduleError::ZoneUnknown { .. })
    ));
    assert!(matches!(parse("TZ=UTC", none()), Err(ScheduleError::Empty)));
}

#[test]
fn several_expressions_give_one_slot_for_each_instant() {
    let texts = ["0 9 * * *", "0 9,10 * * *", "30 9 * * WED"].map(str::to_owned);
    let cron = Cron::parse(&texts, options("UTC")).unwrap();
    assert_eq!(
        slots(&cron, "2025-01-01T00:00:00Z", 5),
        "2025-01-01T09:00 2025-01-01T09:30 2025-01-01T10:00 2025-01-02T09:00 2025-01-02T10:00"
    );
    assert_eq!(cron.shortest_period(), Some(Duration::from_secs(1_800)));
    assert_eq!(cron.texts(), texts);
}

#[test]
fn what_was_kept_reads_back_as_the_same() {
    let given = CronOptions {
        dst_gap: DstGap::Skip,
        dst_overlap: DstOverlap::Both,
        ..options("Europe/Berlin")
    };
    let cron = parse(" H 9 * * MON ", given).unwrap();
    let kept = CronOptions {
        zone: Some(cron.zone().clone()),
        dialect: cron.dialect(),
        dst_gap: cron.dst_gap(),
        dst_overlap: cron.dst_overlap(),
        hash: cron.hash(),
    };
    assert_eq!(Cron::parse(cron.texts(), kept).unwrap(), cron);
}

#[test]
fn the_refusal_says_what_is_wrong() {
    assert_eq!(refused("75 * * * *"), "minute 75 is out of range 0-59");
    assert_eq!(refused("* 24 * * *"), "hour 24 is out of range 0-23");
    assert_eq!(
        refused("* * 0 * *"),
        "day of the month 0 is out of range 1-31"
    );
    assert_eq!(refused("* * * 13 *"), "month 13 is out of range 1-12");
    assert_eq!(
        refused("* * * * 8"),
        "day of the week 8 is out of range 0-7"
    );
    assert_eq!(
        refused("0 0 0 1 1 ? 1969"),
        "year 1969 is out of range 1970-9999"
    );
    assert_eq!(
        refused("* * * FOO *"),
        "month \"FOO\" cannot be read: write 1 to 12 or JAN to DEC"
    );
    assert_eq!(
        refused("*/0 * * * *"),
        "minute \"*/0\" cannot be read: a step is at least 1"
    );
    assert_eq!(
        refused("0 0 * * L"),
        "day of the week \"L\" cannot be read: L needs a day: FRIL is the last Friday of the month"
    );
    assert_eq!(
        refused("* * * *"),
        "4 fields are given: write 5 (minute hour day month weekday), 6 (seconds first) or 7 (year last)"
    );
    assert_eq!(
        refused("0 0 30 2 *"),
        "\"0 0 30 2 *\" never matches: there is no such date or time"
    );
    assert_eq!(
        refused("@reboot"),
        "@reboot names the start of a machine, not a moment: use a one-off job, or @every"
    );
    assert!(refused("@every 5m").starts_with("@every is an interval"));
    assert!(refused("@fortnightly").starts_with("\"@fortnightly\" is not a known macro"));
    assert!(refused("").starts_with("the expression is empty"));
    assert_eq!(
        refused(&"1,".repeat(200)),
        "the expression is 400 bytes long: at most 256 are read"
    );
}

#[test]
fn a_sixth_field_that_could_be_a_year_is_refused_with_both_readings() {
    assert_eq!(
        refused("0 9 1 1 * 2026"),
        "six fields are read with seconds first, and then day of the week 2026 is out of range 0-7; \
         if the last one is meant as a year, write all seven: \"0 0 9 1 1 * 2026\""
    );
    check("0 0 9 1 1 * 2026", "2026-01-01T09:00");
    assert!(refused("0 10 * * ? *").contains("write all seven: \"0 0 10 * * ? *\""));
    assert!(refused("0 9 * * MON *").contains("write all seven"));
    assert_eq!(refused("75 * * * * *"), "second 75 is out of range 0-59");
}

#[test]
fn what_cannot_be_read_is_refused() {
    for text in [
        "a * * * *",
        "1- * * * *",
        "-1 * * * *",
        "1--2 * * * *",
        "1-2-3 * * * *",
        "1,,2 * * * *",
        ", * * * *",
        "1/ * * * *",
        "*/ * * * *",
        "*/a * * * *",
        "*/-5 * * * *",
        "1/2/3 * * * *",
        "/5 * * * *",
        "** * * * *",
        "? * * * *",
        "* ? * * *",
        "* * * ? *",
        "?/5 * * * *",
        "* * * * TUES",
        "L * * * *",
        "* * LL * *",
        "* * L-31 * *",
        "* * L- * *",
        "* * W * *",
        "* * WL * *",
        "* * 32W * *",
        "* * 0W * *",
        "* * 1-5W * *",
        "* * L/2 * *",
        "* * * * MON#0",
        "* * * * MON#6",
        "* * * * MON#",
        "* * * * #2",
        "* * * * MON-FRI#2",
        "* * * * MON#1-2",
        "* * * * 1-5L",
        "* * * * ++1",
        "* * + * *",
        "* * * * +",
        "+1 * * * *",
        "MON * * * *",
        "1.5 * * * *",
        "1 * * * * * * *",
        "５ * * * *",
        "é * * * *",
        "* * * * é#L",
        "* * * * éL",
        "9999999999 * * * *",
        "0 0 0 1 1 ? 2030-2020",
        "0 0 0 1 1 ? 10000",
        "0 0 0 1 1 ? ?",
        "0 0 0 1 1 ? L",
        "*\u{a0}* * * *",
    ] {
        assert!(parse(text, options("UTC")).is_err(), "{text}");
    }
    assert!(Cron::parse(&[], options("UTC")).is_err());
    assert!(Cron::parse(&vec!["@daily".to_owned(); 17], options("UTC")).is_err());
    assert!(Cron::parse(&vec!["@daily".to_owned(); 16], options("UTC")).is_ok());
}

#[test]
fn what_can_never_match_is_refused() {
    for text in [
        "0 0 31 4 *",
        "0 0 30,31 2 *",
        "0 0 31W 2,4,6 *",
        "0 0 L-30 2 *",
        "0 0 0 29 2 ? 2025",
        "0 0 0 29 2 ? 2101-2103",
        "0 0 1 * +MON#2",
        "0 0 30 2 +MON",
    ] {
        assert!(
            matches!(
                parse(text, options("UTC")),
                Err(ScheduleError::Never { .. })
            ),
            "{text}"
        );
    }
    // 2026-03-29T02:30 does not exist in Berlin, and nothing makes up for it.
    let text = "0 30 2 29 3 ? 2026";
    let skip = CronOptions {
        dst_gap: DstGap::Skip,
        ..options("Europe/Berlin")
    };
    assert!(matches!(
        parse(text, skip),
        Err(ScheduleError::Never { .. })
    ));
    let cron = parse(text, options("Europe/Berlin")).unwrap();
    assert_eq!(slots(&cron, "2025-01-01T00:00:00Z", 9), "2026-03-29T01:00");
    // Rare is not never.
    check("0 0 29 2 +MON", "2044-02-29T00:00");
    check("0 0 29 2 *", "2028-02-29T00:00 2032-02-29T00:00");
}

#[test]
fn time_ends_with_the_year_9999() {
    let cron = parse("0 0 1 1 *", options("UTC")).unwrap();
    assert_eq!(slots(&cron, "9998-12-31T00:00:00Z", 2), "9999-01-01T00:00");
    assert_eq!(cron.next_after(Timestamp::MAX), None);
    let every_second = parse("* * * * * *", options("America/New_York")).unwrap();
    assert_eq!(every_second.next_after(Timestamp::MAX), None);
    assert_eq!(
        every_second
            .next_after(Timestamp::from_millis(Timestamp::MAX.as_millis() - 1_000))
            .unwrap()
            .0
            .as_millis()
            % 1_000,
        0
    );
    for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"] {
        let cron = parse("30 23 31 12 *", options(zone)).unwrap();
        assert!(
            slots(&cron, "9998-06-01T00:00:00Z", 9).split(" ").count() <= 2,
            "{zone}"
        );
        assert!(cron.next_after(Timestamp::MIN).is_some());
    }
}

#[test]
fn the_shortest_period_is_that_of_the_clock_on_the_wall() {
    for (text, seconds) in [
        ("* * * * *", 60),
        ("*/15 * * * *", 900),
        ("0 * * * *", 3_600),
        ("0 9 * * *", 86_400),
        ("* * * * * *", 1),
        ("59,0 * * * *", 60),
        ("0 0,23 * * *", 3_600),
        ("0 9 * * MON", 604_800),
        ("0 9 * * MON,THU", 259_200),
        ("0 0 1 * *", 28 * 86_400),
        ("0 0 1 1 *", 365 * 86_400),
        ("0 0 29 2 *", 1_461 * 86_400),
        ("50/20 * * * * *", 60),
        ("0 0 1,31 * *", 86_400),
        ("*/7 * * * *", 240),
        ("0 23 31 12 *", 365 * 86_400),
        ("0 0 L * *", 28 * 86_400),
    ] {
        let cron = parse(text, options("Europe/Berlin")).unwrap();
        assert_eq!(
            cron.shortest_period(),
            Some(Duration::from_secs(seconds)),
            "{text}"
        );
    }
    assert_eq!(
        parse("0 0 0 1 1 ? 2030", options("UTC"))
            .unwrap()
            .shortest_period(),
        None
    );
}
