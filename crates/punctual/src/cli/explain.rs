//! `punctual job explain`: why a job is, was or will be due at a moment, or why not.

use clap::Args;
use comfy_table::{Cell, Color};
use serde_json::Value;

use super::job::Name;
use super::output;
use super::view::run::reason;
use super::view::{self, items, text};
use crate::client::{Call, Client, with_query};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
The conclusion comes first, then what it follows from, step by step. A moment without an offset is
a local time in the zone of the job.

Examples:
  punctual job explain hello --at 2026-03-29T02:30
  punctual job explain hello --at 2026-12-24T18:00:00Z
  punctual job explain hello --at 1790000000 --json";

#[derive(Debug, Args)]
pub(super) struct Explain {
    #[command(flatten)]
    name: Name,
    /// The moment: with an offset, as epoch seconds, or as a local time of the job's zone
    #[arg(long, value_name = "WHEN")]
    at: String,
}

impl Explain {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let path = format!("{}/explain", self.name.path());
        let uri = with_query(&path, &[("at", self.at.clone())]);
        let answer = client.send(Call::get(uri)).await?;
        view::print(&answer, json, show)
    }
}

fn show(answer: &Value) -> Result<(), Failure> {
    output::line(&conclusion(answer))?;
    let steps = items(&answer["steps"]);
    if steps.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let pretty = output::is_terminal();
    let row = |step: &Value| {
        vec![
            holds(&step["holds"], pretty),
            Cell::new(text(&step["step"])),
            Cell::new(text(&step["says"])),
        ]
    };
    let rows = steps.iter().map(row).collect();
    output::table(&["HOLDS", "STEP", "WHY"], rows)
}

/// The moment by both clocks, and what it is to the job.
fn conclusion(answer: &Value) -> String {
    let local = format!("{} {}", text(&answer["local"]), text(&answer["zone"]));
    let (at, local) = (text(&answer["at"]), local.trim());
    let moment = match (at.is_empty(), local.is_empty()) {
        (false, false) => format!("{at} ({local})"),
        (false, true) => at,
        // A time that the clocks skip is no moment.
        (true, _) => local.to_owned(),
    };
    if answer["slot"].is_null() {
        let last = answer["steps"].as_array().and_then(|steps| steps.last());
        return format!(
            "{moment}: {}",
            last.map_or(String::new(), |step| text(&step["says"]))
        );
    }
    if answer["slot"] != true {
        return format!("{moment} is no slot");
    }
    let mut line = format!("{moment} is a slot: {}", fate(answer));
    let entry = &answer["run"];
    let (why, state) = (reason(entry), text(&entry["state"]));
    if !why.is_empty() {
        line.push_str(&format!(" ({why})"));
    } else if !state.is_empty() {
        line.push_str(&format!(" ({state})"));
    }
    if entry["id"].is_string() {
        line.push_str(&format!(", see {}", text(&entry["id"])));
    }
    line
}

/// What became of the slot; of one without a fate, what the last step says of it.
fn fate(answer: &Value) -> String {
    if answer["fate"].is_string() {
        return text(&answer["fate"]);
    }
    let last = items(&answer["steps"]).last();
    last.map_or("unknown".to_owned(), |step| text(&step["says"]))
}

/// Marks for people, words for programs.
fn holds(value: &Value, pretty: bool) -> Cell {
    let (mark, word, color) = match value.as_bool() {
        Some(true) => ("✓", "yes", Color::Green),
        Some(false) => ("✗", "no", Color::Red),
        None => ("·", "-", Color::Grey),
    };
    Cell::new(if pretty { mark } else { word }).fg(color)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_conclusion_is_one_line() {
        let check = |answer: Value, expected: &str| assert_eq!(conclusion(&answer), expected);
        let at = "2026-03-29T01:30:00.000Z";
        check(
            json!({ "at": at, "local": "2026-03-29T03:30:00", "zone": "Europe/Berlin", "slot": false }),
            "2026-03-29T01:30:00.000Z (2026-03-29T03:30:00 Europe/Berlin) is no slot",
        );
        check(
            json!({ "at": null, "local": "2026-03-29T02:30:00", "zone": "Europe/Berlin", "slot": false }),
            "2026-03-29T02:30:00 Europe/Berlin is no slot",
        );
        check(
            json!({ "at": at, "slot": true, "fate": null, "steps": [{ "says": "not kept any more" }] }),
            "2026-03-29T01:30:00.000Z is a slot: not kept any more",
        );
        check(
            json!({ "at": at, "slot": null, "steps": [{ "says": "is not known" }] }),
            "2026-03-29T01:30:00.000Z: is not known",
        );
        check(
            json!({ "at": at, "slot": true, "fate": "planned" }),
            "2026-03-29T01:30:00.000Z is a slot: planned",
        );
        check(
            json!({ "at": at, "slot": true, "fate": "ran", "run": { "id": "run_1", "state": "succeeded" } }),
            "2026-03-29T01:30:00.000Z is a slot: ran (succeeded), see run_1",
        );
        check(
            json!({ "at": at, "slot": true, "fate": "skipped", "run": { "reason": "calendar", "note": "x", "actor": "n" } }),
            "2026-03-29T01:30:00.000Z is a slot: skipped (calendar: x, by n)",
        );
    }
}
