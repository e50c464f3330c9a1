//! What a command line says about when a job is due, and the JSON that it becomes. An empty text takes away
//! what stands: `--ends-at ""` is a job without an end.

use clap::Args;
use serde_json::{Map, Value};

use crate::failure::Failure;

const HEADING: &str = "When it is due";
/// Of a schedule that is said anew, what the one before it leaves to it: whatever the new kind has a use for.
const KEPT_ALWAYS: [&str; 4] = ["timezone", "starts_at", "ends_at", "runs_max"];
const KEPT_OF_CRON: [&str; 3] = ["dialect", "dst_gap", "dst_overlap"];
const KEPT_OF_EVERY: [&str; 1] = ["after_completion"];

#[derive(Debug, Clone, Default, Args)]
pub struct ScheduleFields {
    /// A cron expression, such as "0 9 * * MON-FRI"; given several times, their union
    #[arg(long, value_name = "EXPR", group = "when", help_heading = HEADING)]
    cron: Vec<String>,
    /// An interval, such as 90s, 15m or P1D
    #[arg(long, value_name = "SPAN", group = "when", help_heading = HEADING)]
    every: Option<String>,
    /// A moment, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "MOMENT", group = "when", help_heading = HEADING)]
    at: Option<String>,
    /// A while from now, such as 2h
    #[arg(long = "in", value_name = "SPAN", group = "when", help_heading = HEADING)]
    within: Option<String>,
    /// The time zone of --cron or --every, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", help_heading = HEADING)]
    #[arg(conflicts_with_all = ["at", "within"])]
    tz: Option<String>,
    #[command(flatten)]
    bounds: BoundFields,
}

/// From when to when, how often, and what an interval is counted from.
#[derive(Debug, Clone, Default, Args)]
pub struct BoundFields {
    /// No slot before this moment; a new interval is counted from it
    #[arg(long, value_name = "MOMENT", help_heading = HEADING)]
    pub starts_at: Option<String>,
    /// No slot after this moment
    #[arg(long, value_name = "MOMENT", help_heading = HEADING)]
    pub ends_at: Option<String>,
    /// Be finished after so many runs of slots
    #[arg(long, value_name = "COUNT", help_heading = HEADING)]
    pub runs_max: Option<String>,
    /// Count an interval from the end of each run, not from slot to slot; `=false` takes it back
    #[arg(long, value_name = "BOOL", help_heading = HEADING, hide_possible_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub after_completion: Option<bool>,
}

/// The calendars that a job goes by.
#[derive(Debug, Clone, Default, Args)]
pub struct CalendarFields {
    /// Leave out what this calendar holds; may be given several times
    #[arg(long, value_name = "CALENDAR", help_heading = HEADING)]
    pub exclude: Vec<String>,
    /// Keep to what this calendar holds; given several times, to what any of them holds
    #[arg(long, value_name = "CALENDAR", help_heading = HEADING)]
    pub only: Vec<String>,
}

impl ScheduleFields {
    /// The schedule to send; none if nothing is said about it. It is sent as a whole, so what is not
    /// said is taken from the one that stands.
    pub fn to_json(&self, stands: &Value) -> Result<Option<Value>, Failure> {
        let kind = self.kind();
        let mut beside = self.bounds.to_json();
        if let Some(tz) = &self.tz {
            beside.insert("timezone".to_owned(), text(tz));
        }
        if kind.is_empty() && beside.is_empty() {
            return Ok(None);
        }
        let mut schedule = if kind.is_empty() {
            standing(stands)?
        } else {
            let mut schedule = kept(stands, &kind);
            schedule.extend(kind);
            schedule
        };
        schedule.extend(beside);
        Ok(Some(schedule.into()))
    }

    /// What repeats, alone.
    fn kind(&self) -> Map<String, Value> {
        let mut kind = Map::new();
        match self.cron.as_slice() {
            [] => {}
            [one] => {
                kind.insert("cron".to_owned(), one.as_str().into());
            }
            several => {
                kind.insert("cron".to_owned(), several.into());
            }
        }
        let others = [
            ("every", &self.every),
            ("at", &self.at),
            ("in", &self.within),
        ];
        for (name, value) in others {
            if let Some(value) = value {
                kind.insert(name.to_owned(), value.as_str().into());
            }
        }
        kind
    }
}

impl BoundFields {
    /// What is said, as the fields of a schedule; null takes one away.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut said = Map::new();
        for (name, moment) in [("starts_at", &self.starts_at), ("ends_at", &self.ends_at)] {
            if let Some(moment) = moment {
                said.insert(name.to_owned(), number(moment));
            }
        }
        if let Some(count) = &self.runs_max {
            said.insert("runs_max".to_owned(), number(count));
        }
        match self.after_completion {
            Some(true) => {
                said.insert("after_completion".to_owned(), true.into());
            }
            Some(false) => {
                said.insert("after_completion".to_owned(), Value::Null);
            }
            None => {}
        }
        said
    }
}

impl CalendarFields {
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty() && self.only.is_empty()
    }

    /// Writes the lists that are said. A list is replaced as a whole.
    pub fn put(&self, body: &mut Map<String, Value>) {
        for (name, given) in [("exclude", &self.exclude), ("only", &self.only)] {
            if !given.is_empty() {
                let names = given.iter().filter(|name| !name.is_empty());
                body.insert(name.to_owned(), names.cloned().collect());
            }
        }
    }
}

/// The schedule of the job, if there is one to change.
fn standing(stands: &Value) -> Result<Map<String, Value>, Failure> {
    if stands.get("broken").is_some() {
        return Err(Failure::usage(
            "the job's schedule cannot be read any more: say --cron, --every, --at or --in as well",
        ));
    }
    stands.as_object().cloned().ok_or_else(|| {
        Failure::usage("there is no schedule yet: say --cron or --every as well, or --at or --in")
    })
}

/// What a schedule of another kind, or the same kind said anew, keeps of the one that stands. Nothing of a
/// one-off fits what repeats, and nothing of what repeats fits a one-off.
fn kept(stands: &Value, kind: &Map<String, Value>) -> Map<String, Value> {
    let both = |name: &str| kind.contains_key(name) && stands.get(name).is_some();
    let repeats = |has: &dyn Fn(&str) -> bool| has("cron") || has("every");
    if !repeats(&|name| kind.contains_key(name)) || !repeats(&|name| stands.get(name).is_some()) {
        return Map::new();
    }
    let mut names = KEPT_ALWAYS.to_vec();
    if both("cron") {
        names.extend(KEPT_OF_CRON);
    }
    if both("every") {
        names.extend(KEPT_OF_EVERY);
    }
    // An expression may name its own zone.
    let zoned = |text: &Value| {
        let text = text.as_str().unwrap_or("").trim_start();
        text.starts_with("CRON_TZ=") || text.starts_with("TZ=")
    };
    let zone_named = kind.get("cron").is_some_and(|cron| match cron {
        Value::Array(several) => several.iter().any(zoned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            zoned(cron)
        }
    });
    names.retain(|name| *name != "timezone" || !zone_named);
    let found = names.into_iter().filter_map(|name| {
        let value = stands.get(name)?.clone();
        Some((name.to_owned(), value))
    });
    found.collect()
}

/// A text, or nothing.
fn text(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

/// A number if it is one (a moment may be epoch seconds), else a text for the server to judge.
fn number(given: &str) -> Value {
    given
        .parse::<i64>()
        .map_or_else(|_| text(given), Value::from)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        schedule: ScheduleFields,
        #[command(flatten)]
        calendars: CalendarFields,
    }

    fn line(words: &[&str]) -> Line {
        Line::try_parse_from([&["x"][..], words].concat()).unwrap()
    }

    #[track_caller]
    fn check(stands: &Value, words: &[&str], expected: &Value) {
        let schedule = line(words).schedule.to_json(stands).unwrap();
        assert_eq!(schedule.unwrap_or_default(), *expected, "{words:?}");
    }

    #[test]
    fn bounds_stand_within_the_schedule() {
        check(
            &Value::Null,
            &["--every", "5m", "--after-completion", "--runs-max", "3"],
            &json!({ "every": "5m", "after_completion": true, "runs_max": 3 }),
        );
        check(
            &Value::Null,
            &[
                "--cron",
                "@daily",
                "--starts-at",
                "2027-01-01T00:00:00Z",
                "--ends-at",
                "1800000000",
            ],
            &json!({ "cron": "@daily", "starts_at": "2027-01-01T00:00:00Z", "ends_at": 1_800_000_000 }),
        );
        check(&Value::Null, &[], &Value::Null);
        check(
            &Value::Null,
            &["--every", "5m", "--runs-max", "many"],
            &json!({ "every": "5m", "runs_max": "many" }),
        );
    }

    #[test]
    fn an_empty_text_takes_a_bound_away() {
        let stands =
            json!({ "every": "5m", "anchor": "a", "ends_at": "b", "after_completion": true });
        check(
            &stands,
            &["--ends-at", ""],
            &json!({ "every": "5m", "anchor": "a", "ends_at": null, "after_completion": true }),
        );
        check(
            &stands,
            &["--after-completion=false", "--runs-max", ""],
            &json!({ "every": "5m", "anchor": "a", "ends_at": "b", "after_completion": null, "runs_max": null }),
        );
    }

    #[test]
    fn another_expression_keeps_its_zone_and_its_bounds() {
        let stands = json!({
            "cron": "0 9 * * *", "timezone": "Asia/Tokyo", "dst_gap": "skip", "ends_at": "e", "starts_at": null,
        });
        check(
            &stands,
            &["--cron", "0 10 * * *"],
            &json!({ "cron": "0 10 * * *", "timezone": "Asia/Tokyo", "dst_gap": "skip", "ends_at": "e", "starts_at": null }),
        );
        check(
            &stands,
            &["--cron", "CRON_TZ=UTC 0 10 * * *"],
            &json!({ "cron": "CRON_TZ=UTC 0 10 * * *", "dst_gap": "skip", "ends_at": "e", "starts_at": null }),
        );
        check(
            &stands,
            &["--every", "P1D", "--tz", "UTC"],
            &json!({ "every": "P1D", "timezone": "UTC", "ends_at": "e", "starts_at": null }),
        );
        check(&stands, &["--in", "2h"], &json!({ "in": "2h" }));
        let every =
            json!({ "every": "5m", "anchor": "a", "timezone": "UTC", "after_completion": true });
        check(
            &every,
            &["--every", "6m"],
            &json!({ "every": "6m", "timezone": "UTC", "after_completion": true }),
        );
        check(
            &every,
            &["--cron", "@daily"],
            &json!({ "cron": "@daily", "timezone": "UTC" }),
        );
    }

    #[test]
    fn bounds_need_a_schedule_that_can_be_read() {
        let broken = json!({ "broken": { "cron": "@daily" }, "error": "no such zone" });
        let bounded = line(&["--runs-max", "3"]).schedule;
        assert!(bounded.to_json(&broken).is_err());
        assert!(bounded.to_json(&Value::Null).is_err());
        check(&broken, &["--cron", "@daily"], &json!({ "cron": "@daily" }));
    }

    #[test]
    fn calendars_are_lists_that_are_replaced() {
        let check = |words: &[&str], expected: Value| {
            let mut body = Map::new();
            line(words).calendars.put(&mut body);
            assert_eq!(Value::from(body), expected);
        };
        check(&[], json!({}));
        check(
            &["--exclude", "a", "--exclude", "b", "--only", "c"],
            json!({ "exclude": ["a", "b"], "only": ["c"] }),
        );
        check(&["--exclude", ""], json!({ "exclude": [] }));
    }
}
