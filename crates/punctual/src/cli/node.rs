//! `punctual node …`: who shares the work.

use clap::Subcommand;
use comfy_table::Cell;
use model::schedule::{format_span, parse_span};
use model::{Timestamp, limits};
use serde_json::Value;

use super::output;
use super::view::{self, distance, items, text};
use crate::client::{Call, Client};
use crate::failure::Failure;

const LIST_HELP: &str = "\
PARTS     what the node does; a part in brackets rests, because the node stops or its clock is off
SHARDS    how many of the 256 slices of all jobs it fires
ROOM      how many more attempts it could have under way
LATENESS  how late the oldest run is that it holds and has not handed to its target
CLOCK     what its clock is ahead of the store's, and how wrong that may be
BEAT      when it last said that it lives, which is once a second
ANSWERED  * marks the node that answered

Examples:
  punctual node list
  punctual node list --server http://127.0.0.1:7711
  punctual node list --json";

const HEAD: [&str; 9] = [
    "NAME", "PARTS", "SHARDS", "ROOM", "LATENESS", "CLOCK", "VERSION", "BEAT", "ANSWERED",
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the nodes that live, by name
    #[command(after_help = LIST_HELP)]
    List,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    let Command::List = command;
    let answer = client.send(Call::get("/v1/nodes")).await?;
    view::print(&answer, json, nodes)
}

fn nodes(list: &Value) -> Result<(), Failure> {
    let age = parse_span(&text(&list["heard_age"])).unwrap_or_default();
    // The server's clock, not ours: only so are ages what they say.
    let now = moment(&list["heard_at"]).map(|heard_at| heard_at.plus(age));
    let rows = items(&list["items"]).iter().map(|node| row(node, now));
    let rows = rows.map(|row| row.iter().map(Cell::new).collect());
    view::rows_of(&HEAD, rows.collect(), true, "nodes")?;
    if age >= limits::PRESENCE_TTL {
        let age = format_span(age);
        output::note(&format!(
            "note: the node has heard nothing from the store for {age}; this is how it was then"
        ));
    }
    Ok(())
}

fn row(node: &Value, now: Option<Timestamp>) -> [String; HEAD.len()] {
    let beat = moment(&node["beaten_at"]).zip(now);
    [
        text(&node["name"]),
        parts(node),
        text(&node["shards"]),
        text(&node["room"]),
        text(&node["lateness"]),
        clock(node),
        text(&node["version"]),
        beat.map_or_else(String::new, |(beaten_at, now)| distance(beaten_at, now)),
        if node["self"] == true { "*" } else { "" }.to_owned(),
    ]
}

/// Those that rest stand in brackets.
fn parts(node: &Value) -> String {
    let shown = items(&node["parts"]).iter().map(|part| {
        let rests = match part.as_str() {
            Some("schedule") => node["schedules"] == false,
            Some("execute") => node["executes"] == false,
            Some(_) | None => false,
        };
        if rests {
            format!("({})", text(part))
        } else {
            text(part)
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

fn clock(node: &Value) -> String {
    if node["clock_offset"].is_null() {
        String::new()
    } else {
        format!(
            "{} ± {}",
            text(&node["clock_offset"]),
            text(&node["clock_uncertainty"])
        )
    }
}

fn moment(value: &Value) -> Option<Timestamp> {
    Timestamp::parse(value.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_a_row() {
        let node = json!({
            "name": "a:7710", "parts": ["schedule", "execute"], "schedules": false, "executes": true,
            "shards": 128, "room": 900, "lateness": "12ms", "clock_offset": "-0.042ms",
            "clock_uncertainty": "0.300ms", "version": "0.1.0", "beaten_at": "2026-11-15T12:00:00.000Z",
            "self": true,
        });
        let now = Timestamp::parse("2026-11-15T12:00:05.100Z").ok();
        let clock = "-0.042ms ± 0.300ms";
        assert_eq!(
            row(&node, now),
            [
                "a:7710",
                "(schedule),execute",
                "128",
                "900",
                "12ms",
                clock,
                "0.1.0",
                "5s ago",
                "*"
            ]
        );
        assert_eq!(row(&json!({}), None), [""; HEAD.len()]);
    }
}
