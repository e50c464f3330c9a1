//! What a command line says about when a job is due, and the JSON that it becomes. Only what is said is sent: the
//! server keeps the rest. An empty text takes away what stands: `--ends-at ""` is a job without an end.

use clap::Args;
use serde_json::{Map, Value};

const HEADING: &str = "When it is due";

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ScheduleFields {
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
    #[arg(long, visible_alias = "tz", value_name = "ZONE", help_heading = HEADING)]
    #[arg(conflicts_with_all = ["at", "within"])]
    timezone: Option<String>,
    #[command(flatten)]
    options: CronFields,
    /// Slot 0 of an interval, such as 2026-01-01T00:05:00Z [default of the server: --starts-at, or now]
    #[arg(long, value_name = "MOMENT", help_heading = HEADING)]
    anchor: Option<String>,
    #[command(flatten)]
    bounds: BoundFields,
}

/// How expressions are to be read.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct CronFields {
    /// Whose conventions an expression follows: unix or quartz
    #[arg(long, value_name = "DIALECT", help_heading = HEADING)]
    pub dialect: Option<String>,
    /// When the clocks skip a fixed time: run_after or skip
    #[arg(long, value_name = "POLICY", help_heading = HEADING)]
    pub dst_gap: Option<String>,
    /// When a fixed time comes twice: first or both
    #[arg(long, value_name = "POLICY", help_heading = HEADING)]
    pub dst_overlap: Option<String>,
}

/// From when to when, how often, and what an interval is counted from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct BoundFields {
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
pub(super) struct CalendarFields {
    /// Leave out what this calendar holds; may be given several times
    #[arg(long, value_name = "CALENDAR", help_heading = HEADING)]
    pub exclude: Vec<String>,
    /// Keep to what this calendar holds; given several times, to what any of them holds
    #[arg(long, value_name = "CALENDAR", help_heading = HEADING)]
    pub only: Vec<String>,
}

impl ScheduleFields {
    /// What is said about the schedule; none if nothing is.
    pub(super) fn to_json(&self) -> Option<Value> {
        let mut said = self.kind();
        let texts = [("timezone", &self.timezone)];
        for (name, value) in texts.into_iter().chain(self.options.named()) {
            if let Some(value) = value {
                said.insert(name.to_owned(), text(value));
            }
        }
        if let Some(anchor) = &self.anchor {
            said.insert("anchor".to_owned(), number(anchor));
        }
        said.extend(self.bounds.to_json());
        (!said.is_empty()).then(|| said.into())
    }

    /// Whether it is said what repeats, or when it is due once.
    pub(super) fn has_kind(&self) -> bool {
        !self.kind().is_empty()
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

impl CronFields {
    fn named(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("dialect", &self.dialect),
            ("dst_gap", &self.dst_gap),
            ("dst_overlap", &self.dst_overlap),
        ]
    }

    /// Writes what is said.
    pub(super) fn put(&self, body: &mut Map<String, Value>) {
        for (name, value) in self.named() {
            if let Some(value) = value {
                body.insert(name.to_owned(), text(value));
            }
        }
    }
}

impl BoundFields {
    /// What is said, as the fields of a schedule; null takes one away.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        let mut said = Map::new();
        for (name, moment) in [("starts_at", &self.starts_at), ("ends_at", &self.ends_at)] {
            if let Some(moment) = moment {
                said.insert(name.to_owned(), number(moment));
            }
        }
        if let Some(count) = &self.runs_max {
            said.insert("runs_max".to_owned(), number(count));
        }
        if let Some(after) = self.after_completion {
            // Null is the default, and means nothing to a schedule that has no use for it.
            let value = if after { true.into() } else { Value::Null };
            said.insert("after_completion".to_owned(), value);
        }
        said
    }
}

impl CalendarFields {
    pub(super) fn is_empty(&self) -> bool {
        self.exclude.is_empty() && self.only.is_empty()
    }

    /// Writes the lists that are said. A list is replaced as a whole.
    pub(super) fn put(&self, body: &mut Map<String, Value>) {
        for (name, given) in [("exclude", &self.exclude), ("only", &self.only)] {
            if !given.is_empty() {
                let names = given.iter().filter(|name| !name.is_empty());
                body.insert(name.to_owned(), names.cloned().collect());
            }
        }
    }
}

/// A text, or nothing.
pub(super) fn text(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

/// A number if it is one (a moment may be epoch seconds), else a text for the server to refuse.
pub(super) fn number(given: &str) -> Value {
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
    fn check(words: &[&str], expected: &Value) {
        let schedule = line(words).schedule.to_json();
        assert_eq!(schedule.unwrap_or_default(), *expected, "{words:?}");
    }

    #[test]
    fn what_is_said_stands_within_the_schedule_and_nothing_else() {
        check(
            &["--every", "5m", "--after-completion", "--runs-max", "3"],
            &json!({ "every": "5m", "after_completion": true, "runs_max": 3 }),
        );
        let bounded = [
            "--cron",
            "@daily",
            "--starts-at",
            "2027-01-01T00:00:00Z",
            "--ends-at",
            "1800000000",
        ];
        check(
            &bounded,
            &json!({ "cron": "@daily", "starts_at": "2027-01-01T00:00:00Z", "ends_at": 1_800_000_000 }),
        );
        check(&[], &Value::Null);
        check(&["--runs-max", "many"], &json!({ "runs_max": "many" }));
        check(
            &["--tz", "Asia/Tokyo"],
            &json!({ "timezone": "Asia/Tokyo" }),
        );
        check(
            &[
                "--cron",
                "0 0 9 ? * 2",
                "--dialect",
                "quartz",
                "--dst-gap",
                "skip",
                "--dst-overlap",
                "both",
            ],
            &json!({ "cron": "0 0 9 ? * 2", "dialect": "quartz", "dst_gap": "skip", "dst_overlap": "both" }),
        );
        check(
            &["--every", "15m", "--anchor", "2026-01-01T00:05:00Z"],
            &json!({ "every": "15m", "anchor": "2026-01-01T00:05:00Z" }),
        );
    }

    #[test]
    fn an_empty_text_takes_away_what_stands() {
        check(
            &[
                "--ends-at",
                "",
                "--runs-max",
                "",
                "--timezone",
                "",
                "--after-completion=false",
            ],
            &json!({ "ends_at": null, "runs_max": null, "timezone": null, "after_completion": null }),
        );
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
