//! What refusals say: a client should be able to put it right from the text alone.

use crate::wire;

#[track_caller]
fn check<T>(read: Result<T, crate::ops::FieldError>, field: &str, detail: &str) {
    let Err(error) = read else {
        panic!("{detail}: it was taken");
    };
    assert_eq!(
        (error.field.as_str(), error.detail.as_str()),
        (field, detail)
    );
}

#[track_caller]
fn job(schedule: &str, field: &str, detail: &str) {
    let body = format!(r#"{{"schedule": {schedule}}}"#);
    check(wire::job_draft(body.as_bytes()), field, detail);
}

#[track_caller]
fn list(value: &str, detail: &str) {
    for field in ["exclude", "only"] {
        let body = format!(r#"{{"{field}": {value}}}"#);
        check(wire::job_draft(body.as_bytes()), field, detail);
    }
}

#[track_caller]
fn calendar(body: &str, field: &str, detail: &str) {
    check(wire::calendar_draft(body.as_bytes()), field, detail);
}

#[test]
fn bounds_say_what_they_are() {
    let moment =
        "expected a moment such as \"2026-12-24T18:00:00Z\", or epoch seconds, not true or false";
    job(
        r#"{"cron": "@daily", "starts_at": true}"#,
        "schedule.starts_at",
        moment,
    );
    job(
        r#"{"cron": "@daily", "ends_at": true}"#,
        "schedule.ends_at",
        moment,
    );
    let count = "expected a whole number from 1 to 4294967295, not 0";
    job(
        r#"{"cron": "@daily", "runs_max": 0}"#,
        "schedule.runs_max",
        count,
    );
    for field in ["starts_at", "ends_at", "runs_max"] {
        job(
            &format!(r#"{{"in": "1h", "{field}": 7}}"#),
            &format!("schedule.{field}"),
            &format!("{field} belongs to cron and every: leave it out"),
        );
    }
    job(
        r#"{"cron": "@daily", "after_completion": true}"#,
        "schedule.after_completion",
        "after_completion belongs to every: leave it out",
    );
    job(
        r#"{"every": "1h", "after_completion": "yes"}"#,
        "schedule.after_completion",
        "expected true or false, not a string",
    );
    job(
        r#"{"cron": "@daily", "run_max": 3}"#,
        "schedule.run_max",
        "\"run_max\" is not a known field: did you mean \"runs_max\"?",
    );
}

#[test]
fn calendars_of_a_job_say_what_they_are() {
    let what = "expected a list of calendars by their names, such as [\"holidays\"], not a string";
    list(r#""holidays""#, what);
    list("[5]", "expected the name of a calendar, not a number");
    list(
        r#"["a b"]"#,
        "a calendar's name has 1 to 128 letters, digits or any of . _ -",
    );
    list(r#"["a", "b", "a"]"#, "a is named twice: leave one out");
    let many = format!("[{}]", vec![r#""a""#; 17].join(","));
    list(&many, "17 entries: at most 16");
}

#[test]
fn a_calendar_says_what_it_is_made_of() {
    let none = "a calendar has at least one entry in dates, yearly, weekly or ranges";
    calendar("{}", "dates", none);
    let body = r#"{"dates": ["25.12."]}"#;
    calendar(body, "dates", "\"25.12.\" is not a date: write 2026-12-25");
    let what = "expected a list of dates such as \"2026-12-25\", not a string";
    calendar(r#"{"dates": "2026-12-25"}"#, "dates", what);
    let what = "expected dates such as \"2026-12-25\", not a number";
    calendar(r#"{"dates": [1]}"#, "dates", what);
    let body = r#"{"yearly": ["25-12"]}"#;
    let detail = "\"25-12\" is not a day of every year: write 12-25, month first";
    calendar(body, "yearly", detail);
    let body = r#"{"weekly": ["weekend"]}"#;
    let detail =
        "\"weekend\" is not a part of the week: write SAT, MON-FRI or \"MON-FRI 09:00-17:00\"";
    calendar(body, "weekly", detail);
    let body = r#"{"ranges": ["2026-12-24/2026-12-20"]}"#;
    calendar(
        body,
        "ranges",
        "\"2026-12-24/2026-12-20\" ends before it begins",
    );
    let body = r#"{"ranges": [{"from": "2026-12-24"}]}"#;
    calendar(body, "ranges.to", "to is missing: a range has from and to");
    let body = r#"{"ranges": [7]}"#;
    let detail = "expected a range such as \"2026-12-24/2027-01-02\", or {\"from\": …, \"to\": …}, not a number";
    calendar(body, "ranges", detail);
    let body = r#"{"date": ["2026-12-25"]}"#;
    calendar(
        body,
        "date",
        "\"date\" is not a known field: did you mean \"dates\"?",
    );
    let body = r#"{"name": "ä", "dates": ["2026-12-25"]}"#;
    let detail = "a calendar's name has 1 to 128 letters, digits or any of . _ -";
    calendar(body, "name", detail);
}

#[test]
fn resuming_says_what_it_takes() {
    let detail = "expected true or false, not a number";
    check(wire::resume(br#"{"catch_up": 1}"#), "catch_up", detail);
    let detail = "\"catchup\" is not a known field: did you mean \"catch_up\"?";
    check(wire::resume(br#"{"catchup": true}"#), "catchup", detail);
    assert_eq!(wire::resume(b""), Ok(false));
    assert_eq!(wire::resume(br#"{"catch_up": null}"#), Ok(false));
    assert_eq!(wire::resume(br#"{"catch_up": true}"#), Ok(true));
}

#[test]
fn a_preview_takes_bounds_once() {
    let body = br#"{"schedule": {"cron": "@daily", "runs_max": 2}, "runs_max": 2}"#;
    let detail = "runs_max is given twice, here and in the schedule";
    check(wire::preview(body), "runs_max", detail);
    let body = br#"{"schedule": {"in": "1h"}, "ends_at": 4102444800}"#;
    let detail = "ends_at means nothing to such a schedule: leave it out";
    check(wire::preview(body), "ends_at", detail);
}

/// Bytes of bodies that are nearly right: whatever comes, it is read or refused.
#[test]
fn nearly_right_bodies_are_read_or_refused() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    let bodies = [
        r#"{"schedule":{"every":"1h","after_completion":true,"starts_at":"2026-01-01T00:00:00Z","ends_at":4102444800,"runs_max":3},"exclude":["a"],"only":["b","c"]}"#,
        r#"{"name":"c","note":"n","timezone":"Europe/Berlin","dates":["2026-12-25"],"yearly":["12-25"],"weekly":["MON-FRI 09:00-17:00"],"ranges":["2026-12-24/2027-01-02",{"from":"2026-12-24T18:00","to":"2026-12-27T06:00"}]}"#,
        r#"{"schedule":"@daily","starts_at":0,"runs_max":3,"exclude":["a"],"only":null,"from":0,"count":3}"#,
    ];
    let mut random = StdRng::seed_from_u64(7);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..30_000 {
        let mut body = bodies[round % bodies.len()].as_bytes().to_vec();
        for _ in 0..random.random_range(0..4) {
            let at = random.random_range(0..body.len());
            match random.random_range(0..4) {
                0 => body[at] = random.random(),
                1 => body.insert(at, b"\"{}[],:09nul\\"[random.random_range(0..13)]),
                2 => drop(body.remove(at)),
                _ => body.swap(at, 0),
            }
            if body.is_empty() {
                body.push(b'{');
            }
        }
        let read = match round % 3 {
            0 => wire::job_draft(&body).map(|_| ()),
            1 => wire::calendar_draft(&body).map(|_| ()),
            _ => wire::preview(&body).map(|_| ()),
        };
        match read {
            Ok(()) => taken += 1,
            Err(error) => {
                assert!(!error.detail.is_empty());
                refused += 1;
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} {refused}");
}
