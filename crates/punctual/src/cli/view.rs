//! Answers as people read them: tables for lists, lines for one thing. Every text comes from a server, so
//! every text is cleaned before it is shown.

use clap::Args;
use comfy_table::{Cell, Color};
use engine::{Clock, SystemClock};
use model::Timestamp;
use model::schedule::format_span;
use serde_json::{Value, json};

use super::output::{self, clean};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

/// What people look for first in a job or a run.
const FIRST: [&str; 14] = [
    "id",
    "key",
    "job",
    "kind",
    "slot",
    "state",
    "reason",
    "outcome",
    "note",
    "next_slot",
    "due_at",
    "schedule",
    "target",
    "payload",
];
/// Characters of a target's answer in a table; `--json` has all that is kept.
const SAID_MAX: usize = 120;

/// Which part of a list.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// How many entries a page has
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
    /// Where to go on: the `next_cursor` of the page before
    #[arg(long)]
    cursor: Option<String>,
    /// Every page, one after another; with --json one document per line
    #[arg(long)]
    all: bool,
}

pub fn parse(answer: &[u8]) -> Result<Value, Failure> {
    let strange =
        |_| Failure::refused("the server's answer is not JSON: is this a Punctual server?");
    serde_json::from_slice(answer).map_err(strange)
}

/// Prints an answer as it came, or as people read it.
pub fn print(
    answer: &[u8],
    json: bool,
    show: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if json {
        output::json(answer)
    } else {
        show(&parse(answer)?)
    }
}

/// Prints a list, page by page.
pub async fn list(
    client: &Client,
    path: &str,
    query: Vec<(&str, String)>,
    page: &PageArgs,
    json: bool,
    show: fn(&[Value], bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut cursor = page.cursor.clone();
    let mut first = true;
    loop {
        let limit = page.limit.map(|limit| ("limit", limit.to_string()));
        let parts = query
            .iter()
            .cloned()
            .chain(limit)
            .chain(cursor.map(|cursor| ("cursor", cursor)));
        let query: Vec<_> = parts
            .map(|(name, value)| format!("{name}={}", encode(&value)))
            .collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let answer = client
            .send(Call::get(format!("{path}{mark}{}", query.join("&"))))
            .await?;
        let read = parse(&answer)?;
        if json {
            output::json(&answer)?;
        } else {
            show(read["items"].as_array().map_or(&[], Vec::as_slice), first)?;
        }
        cursor = read["next_cursor"].as_str().map(str::to_owned);
        match &cursor {
            Some(_) if page.all => first = false,
            Some(next) if !json => {
                output::note(&format!(
                    "there are more: --all, or --cursor {}",
                    clean(next)
                ));
                return Ok(());
            }
            Some(_) | None => return Ok(()),
        }
    }
}

/// What a create or a change did to a job, to runs that it met on their way, and to the slots ahead.
pub fn changed(done: &str, job: &Value) -> Result<(), Failure> {
    let mut line = format!("{done} {}", text(&job["id"]));
    if let Some(key) = job["key"].as_str() {
        line.push_str(&format!(" ({})", clean(key)));
    }
    if job["next_slot"].is_string() {
        line.push_str(&format!(", next due {}", moment(&job["next_slot"], true)));
    }
    output::line(&line)?;
    let beside = [
        ("runs", "dispatched", "was on its way already"),
        (
            "runs",
            "unconfirmed",
            "may still run: its holder has not answered",
        ),
        ("slots", "removed", "is no slot any more"),
        ("slots", "added", "is a new slot"),
    ];
    for (of, name, meaning) in beside {
        for one in job[of][name].as_array().map_or(&[][..], Vec::as_slice) {
            output::note(&format!("note: {} {meaning}", text(one)));
        }
    }
    Ok(())
}

pub fn jobs(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|job| {
        let next = moment(&job["next_slot"], output::is_terminal());
        vec![
            Cell::new(text(&job["id"])),
            Cell::new(text(&job["key"])),
            state(&job["state"]),
            Cell::new(next),
            Cell::new(schedule(&job["schedule"])),
            Cell::new(target(&job["target"])),
        ]
    });
    rows_of(
        &["ID", "KEY", "STATE", "NEXT SLOT", "SCHEDULE", "TARGET"],
        rows.collect(),
        first,
        "jobs",
    )
}

pub fn runs(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|run| {
        vec![
            Cell::new(text(&run["id"])),
            Cell::new(moment(&run["due_at"], output::is_terminal())),
            state(&run["state"]),
            Cell::new(text(&run["attempt"])),
            Cell::new(text(&run["outcome"])),
            Cell::new(text(&run["reason"])),
            Cell::new(text(&run["job"])),
        ]
    });
    let head = ["ID", "DUE", "STATE", "ATTEMPT", "OUTCOME", "REASON", "JOB"];
    rows_of(&head, rows.collect(), first, "runs")
}

fn rows_of(head: &[&str], rows: Vec<Vec<Cell>>, first: bool, what: &str) -> Result<(), Failure> {
    if rows.is_empty() {
        if first {
            output::note(&format!("no {what}"));
        }
        return Ok(());
    }
    if first {
        output::table(head, rows)
    } else {
        output::table_goes_on(head, rows)
    }
}

/// One job, a field to a line.
pub fn job(job: &Value) -> Result<(), Failure> {
    fields(job)
}

/// One run, a field to a line, its attempts as a table below.
pub fn run(run: &Value) -> Result<(), Failure> {
    let mut head = run.clone();
    let attempts = head.as_object_mut().and_then(|run| run.remove("attempts"));
    fields(&head)?;
    let attempts = attempts
        .as_ref()
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    if attempts.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let row = |attempt: &Value| {
        let said = if attempt["error"].is_null() {
            &attempt["output"]
        } else {
            &attempt["error"]
        };
        vec![
            Cell::new(text(&attempt["no"])),
            Cell::new(moment(&attempt["dispatched_at"], false)),
            Cell::new(moment(&attempt["settled_at"], false)),
            state(&attempt["outcome"]),
            Cell::new(text(&attempt["status"])),
            Cell::new(cut(&text(said))),
        ]
    };
    let head = [
        "ATTEMPT",
        "DISPATCHED",
        "SETTLED",
        "OUTCOME",
        "STATUS",
        "SAID",
    ];
    output::table(&head, attempts.iter().map(row).collect())
}

fn fields(thing: &Value) -> Result<(), Failure> {
    let Some(thing) = thing.as_object() else {
        return Err(Failure::refused("the server's answer is not an object"));
    };
    let is_said = |value: &Value| !value.is_null() && value != &json!({}) && value != &json!([]);
    let mut said: Vec<_> = thing.iter().filter(|(_, value)| is_said(value)).collect();
    // The rest keeps the order of the alphabet.
    said.sort_by_key(|(name, _)| {
        FIRST
            .iter()
            .position(|first| first == name)
            .unwrap_or(FIRST.len())
    });
    let width = said.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in said {
        let shown = if name.ends_with("_at") || name == "next_slot" || name == "slot" {
            moment(value, true)
        } else {
            text(value)
        };
        output::line(&format!("{:width$}  {shown}", clean(name)))?;
    }
    Ok(())
}

/// A value in a line: a text as it is, nothing as nothing, the rest as JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => clean(text).into_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            clean(&value.to_string()).into_owned()
        }
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SAID_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// A moment, and how far away it is.
fn moment(value: &Value, relative: bool) -> String {
    let shown = text(value);
    match Timestamp::parse(&shown) {
        Ok(moment) if relative => {
            format!("{shown} ({})", distance(moment, Clock::now(&SystemClock)))
        }
        Ok(_) | Err(_) => shown,
    }
}

/// How far a moment is from another: "in 5m", "2d ago". Two units are enough for anyone.
pub fn distance(moment: Timestamp, now: Timestamp) -> String {
    let (ahead, ago) = (moment.since(now), now.since(moment));
    let away = ahead.max(ago);
    let unit = match away.as_secs() {
        0..60 => 1,
        60..3_600 => 60,
        3_600..172_800 => 3_600,
        _ => 86_400,
    };
    let whole = std::time::Duration::from_secs(away.as_secs() / unit * unit);
    match (whole.is_zero(), ago.is_zero()) {
        (true, _) => "now".to_owned(),
        (false, true) => format!("in {}", format_span(whole)),
        (false, false) => format!("{} ago", format_span(whole)),
    }
}

/// A schedule in a few words.
fn schedule(value: &Value) -> String {
    let zone = value["timezone"].as_str().filter(|zone| *zone != "UTC");
    let when = if let Some(several) = value["cron"].as_array() {
        several.iter().map(text).collect::<Vec<_>>().join(" | ")
    } else if value["cron"].is_string() {
        text(&value["cron"])
    } else if !value["every"].is_null() {
        format!("every {}", text(&value["every"]))
    } else if !value["at"].is_null() {
        format!("at {}", text(&value["at"]))
    } else {
        text(value)
    };
    zone.map_or(when.clone(), |zone| format!("{when} {}", clean(zone)))
}

fn target(value: &Value) -> String {
    let http = &value["http"];
    if http.is_object() {
        format!("{} {}", text(&http["method"]), text(&http["url"]))
    } else {
        text(value)
    }
}

/// A state in the colour of its mood.
fn state(value: &Value) -> Cell {
    let cell = Cell::new(text(value));
    match value.as_str().unwrap_or("") {
        "active" | "succeeded" => cell.fg(Color::Green),
        "ready" | "running" => cell.fg(Color::Cyan),
        "paused" | "retrying" | "timed_out" | "lost" => cell.fg(Color::Yellow),
        "dead" | "invalid" | "failed" => cell.fg(Color::Red),
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_short() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let check = |secs: i64, expected: &str| {
            let moment = Timestamp::from_millis(now.as_millis() + secs * 1_000);
            assert_eq!(distance(moment, now), expected);
        };
        check(0, "now");
        check(5, "in 5s");
        check(-59, "59s ago");
        check(3_599, "in 59m");
        check(-7_300, "2h ago");
        check(10 * 86_400 + 5, "in 10d");
    }

    #[test]
    fn schedules_and_targets_fit_a_cell() {
        assert_eq!(
            schedule(&json!({ "cron": "@daily", "timezone": "Asia/Tokyo" })),
            "@daily Asia/Tokyo"
        );
        assert_eq!(
            schedule(&json!({ "cron": ["a", "b"], "timezone": "UTC" })),
            "a | b"
        );
        assert_eq!(schedule(&json!({ "every": "5s" })), "every 5s");
        assert_eq!(
            target(&json!({ "http": { "url": "http://a/", "method": "GET" } })),
            "GET http://a/"
        );
    }

    #[test]
    fn whatever_a_server_says_is_cleaned() {
        assert_eq!(text(&json!("a\u{1b}[31m")), "a\\u{1b}[31m");
        assert_eq!(text(&json!(["\u{9b}"])), "[\"\\u{9b}\"]");
    }
}
