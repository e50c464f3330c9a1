//! `punctual job slots`: what became of a job's slots, and what will.

use clap::Args;
use comfy_table::{Cell, Color};
use model::{Timestamp, limits};
use serde_json::Value;

use super::job::Name;
use super::output;
use super::view::{self, cut, items, text};
use crate::client::{Call, Client, with_query};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
A slot ran, was skipped or missed, or is planned. Slots that share a fate are one line: the first,
the last and how many there are. Moments are UTC.

Examples:
  punctual job slots hello
  punctual job slots hello --from 2026-03-28T00:00:00Z --to 2026-03-31T00:00:00Z
  punctual job slots hello --limit 5000 --json";

const HEAD: [&str; 5] = ["SLOT", "FATE", "REASON OR RUN", "NOTE", "ACTOR"];

#[derive(Debug, Args)]
pub(super) struct Slots {
    #[command(flatten)]
    name: Name,
    /// From this moment on [default of the server: a day ago]
    #[arg(long, value_name = "MOMENT")]
    from: Option<String>,
    /// Up to this moment [default of the server: a day from now]
    #[arg(long, value_name = "MOMENT")]
    to: Option<String>,
    /// How many lines at most; with --json every page is a document on a line
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl Slots {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let path = format!("{}/slots", self.name.path());
        let mut range = (self.from.clone(), self.to.clone());
        let mut left = self.limit as usize;
        let mut cursor = None;
        let mut first = true;
        loop {
            let parameters = query(&range, left, cursor.take());
            let answer = client
                .send(Call::get(with_query(&path, &parameters)))
                .await?;
            let page = view::parse(&answer)?;
            let slots = items(&page["items"]);
            if json {
                output::json(&answer)?;
            } else {
                view::rows_of(&HEAD, slots.iter().map(row).collect(), first, "slots")?;
                if first {
                    forgotten(&page);
                }
            }
            left = left.saturating_sub(slots.len());
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            first = false;
            // What a day ago means moves on; the pages after the first are of the same day.
            let said = |name: &str| page[name].as_str().map(str::to_owned);
            range = (said("from").or(range.0), said("to").or(range.1));
            match &cursor {
                Some(_) if left > 0 => {}
                Some(_) if !json => {
                    output::note("there are more: --limit, or --from the last one");
                    return Ok(());
                }
                Some(_) | None => return Ok(()),
            }
        }
    }
}

fn query(
    range: &(Option<String>, Option<String>),
    left: usize,
    cursor: Option<String>,
) -> Vec<(&'static str, String)> {
    let from = range.0.clone().map(|from| ("from", from));
    let to = range.1.clone().map(|to| ("to", to));
    let limit = ("limit", left.min(limits::PAGE_MAX).to_string());
    let cursor = cursor.map(|cursor| ("cursor", cursor));
    let parameters = from.into_iter().chain(to).chain([limit]).chain(cursor);
    parameters.collect()
}

/// Says if a part of what was asked for is no longer kept.
fn forgotten(page: &Value) {
    let moment = |name: &str| Timestamp::parse(page[name].as_str()?).ok();
    if let (Some(from), Some(kept)) = (moment("from"), moment("history_from"))
        && from < kept
    {
        output::note(&format!(
            "note: what came of slots before {kept} is no longer kept"
        ));
    }
}

fn row(slot: &Value) -> Vec<Cell> {
    vec![
        Cell::new(moments(slot)),
        fate(&slot["fate"]),
        Cell::new(reason_or_run(slot)),
        Cell::new(cut(&text(&slot["note"]))),
        Cell::new(text(&slot["actor"])),
    ]
}

/// A slot, or the first and the last of several.
fn moments(slot: &Value) -> String {
    match slot["count"].as_u64() {
        Some(count) if count > 1 => {
            let (first, last) = (text(&slot["first"]), text(&slot["last"]));
            format!("{first} … {last} ({count})")
        }
        Some(_) | None => text(&slot["slot"]),
    }
}

fn reason_or_run(slot: &Value) -> String {
    let run = &slot["run"];
    if run.is_object() {
        return format!("{} {}", text(&run["id"]), text(&run["state"]));
    }
    if slot["overdue"] == true {
        return "overdue".to_owned();
    }
    text(&slot["reason"])
}

/// A fate in the colour of its mood.
fn fate(value: &Value) -> Cell {
    let cell = Cell::new(text(value));
    match value.as_str().unwrap_or("") {
        "ran" => cell.fg(Color::Green),
        "planned" => cell.fg(Color::Cyan),
        "skipped" => cell.fg(Color::Yellow),
        "missed" | "unknown" => cell.fg(Color::Red),
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stretch_is_one_line() {
        assert_eq!(moments(&json!({ "slot": "a" })), "a");
        assert_eq!(
            moments(&json!({ "slot": "a", "first": "a", "last": "a", "count": 1 })),
            "a"
        );
        let stretch = json!({ "slot": "a", "first": "a", "last": "b", "count": 7 });
        assert_eq!(moments(&stretch), "a … b (7)");
    }

    #[test]
    fn a_slot_says_its_run_or_its_reason() {
        let check = |slot: Value, expected: &str| assert_eq!(reason_or_run(&slot), expected);
        check(
            json!({ "fate": "ran", "run": { "id": "run_1", "state": "dead" } }),
            "run_1 dead",
        );
        check(
            json!({ "fate": "skipped", "reason": "paused", "run": null }),
            "paused",
        );
        check(json!({ "fate": "planned" }), "");
        check(json!({ "fate": "planned", "overdue": true }), "overdue");
    }
}
