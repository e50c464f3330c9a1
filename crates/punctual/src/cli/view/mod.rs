//! Answers as people read them: tables for lists, lines for one thing. Every text comes from a server, so
//! every text is cleaned before it is shown.

pub(super) mod job;
pub(super) mod plan;
pub(super) mod run;

use clap::Args;
use comfy_table::{Cell, Color};
use engine::{Clock, SystemClock};
use model::Timestamp;
use model::schedule::format_span;
use serde_json::{Value, json};

use super::output::{self, clean};
use crate::client::{Call, Client, with_query};
use crate::failure::Failure;

/// What people look for first in a job or a run.
const FIRST: [&str; 28] = [
    "id",
    "key",
    "name",
    "owner",
    "job",
    "kind",
    "slot",
    "stretch",
    "state",
    "reason",
    "outcome",
    "note",
    "actor",
    "paused_by",
    "warning",
    "next_slot",
    "resting",
    "due_at",
    "runs_left",
    "schedule",
    "starts_at",
    "ends_at",
    "runs_max",
    "after_completion",
    "exclude",
    "only",
    "target",
    "payload",
];
/// Characters of a target's answer in a table; `--json` has all that is kept.
const SAID_MAX: usize = 120;

/// Which part of a list.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
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

pub(super) fn parse(answer: &[u8]) -> Result<Value, Failure> {
    let strange =
        |_| Failure::refused("the server's answer is not JSON: is this a Punctual server?");
    serde_json::from_slice(answer).map_err(strange)
}

/// Prints an answer as it came, or as people read it.
pub(super) fn print(
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
pub(super) async fn list(
    client: &Client,
    path: &str,
    query: Vec<(&str, String)>,
    page: &PageArgs,
    json: bool,
    show: fn(&[Value], bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    list_with(client, path, query, page, json, async |items, first| {
        show(items, first)
    })
    .await
}

/// The same where more has to be read to show a page.
pub(super) async fn list_with(
    client: &Client,
    path: &str,
    query: Vec<(&str, String)>,
    page: &PageArgs,
    json: bool,
    show: impl AsyncFn(&[Value], bool) -> Result<(), Failure>,
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
        let uri = with_query(path, &parts.collect::<Vec<_>>());
        let answer = client.send(Call::get(uri)).await?;
        let read = parse(&answer)?;
        if json {
            output::json(&answer)?;
        } else {
            show(items(&read["items"]), first).await?;
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

/// What a list holds; nothing if it is none.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Prints rows, with their head if they are the first.
pub(super) fn rows_of(
    head: &[&str],
    rows: Vec<Vec<Cell>>,
    first: bool,
    what: &str,
) -> Result<(), Failure> {
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

/// One thing, a field to a line.
pub(super) fn fields(thing: &Value) -> Result<(), Failure> {
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
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => clean(text).into_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            clean(&value.to_string()).into_owned()
        }
    }
}

/// The beginning of a long text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SAID_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// A moment, and how far away it is.
pub(super) fn moment(value: &Value, relative: bool) -> String {
    let shown = text(value);
    match Timestamp::parse(&shown) {
        Ok(moment) if relative => {
            format!("{shown} ({})", distance(moment, Clock::now(&SystemClock)))
        }
        Ok(_) | Err(_) => shown,
    }
}

/// How far a moment is from another: "in 5m", "2d ago". Two units are enough for anyone.
pub(super) fn distance(moment: Timestamp, now: Timestamp) -> String {
    let (ahead, ago) = (moment.since(now), now.since(moment));
    let away = ahead.max(ago);
    let unit = match away.as_secs() {
        0..3_600 => 1,
        3_600..172_800 => 60,
        _ => 3_600,
    };
    let whole = std::time::Duration::from_secs(away.as_secs() / unit * unit);
    match (whole.is_zero(), ago.is_zero()) {
        (true, _) => "now".to_owned(),
        (false, true) => format!("in {}", format_span(whole)),
        (false, false) => format!("{} ago", format_span(whole)),
    }
}

/// A state in the colour of its mood.
pub(super) fn state(value: &Value) -> Cell {
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
        check(90, "in 90s");
        check(3_599, "in 59m59s");
        check(-7_300, "2h1m ago");
        check(10 * 86_400 + 5, "in 10d");
        check(10 * 86_400 + 7_300, "in 10d2h");
    }

    #[test]
    fn whatever_a_server_says_is_cleaned() {
        assert_eq!(text(&json!("a\u{1b}[31m")), "a\\u{1b}[31m");
        assert_eq!(text(&json!(["\u{9b}"])), "[\"\\u{9b}\"]");
    }
}
