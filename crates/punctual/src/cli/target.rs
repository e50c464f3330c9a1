//! `punctual target …`: whom jobs call, and how they are.

use clap::Subcommand;
use comfy_table::Cell;
use serde_json::Value;

use super::view::{self, items, state, text};
use crate::client::{Call, Client};
use crate::failure::Failure;

const LIST_HELP: &str = "\
STATE     of the breaker: open while no calls are made, half_open while one is tried
FAILURES  calls in a row that were not answered, or answered with 5xx
CALLS     under way, and how many may be
QUEUED    runs that wait for calls under way to end
WAITING   runs that wait for the breaker to close

Each node sees for itself: query another with --server.";

const HEAD: [&str; 7] = [
    "ORIGIN", "STATE", "FAILURES", "UNTIL", "CALLS", "QUEUED", "WAITING",
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the origins that the queried node calls, and how it sees them
    #[command(after_help = LIST_HELP)]
    List,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    let Command::List = command;
    let answer = client.send(Call::get("/v1/targets")).await?;
    view::print(&answer, json, targets)
}

fn targets(list: &Value) -> Result<(), Failure> {
    let rows = items(&list["items"]).iter().map(|target| {
        vec![
            Cell::new(text(&target["origin"])),
            state(&target["state"]),
            Cell::new(text(&target["failures"])),
            Cell::new(text(&target["open_until"])),
            Cell::new(format!(
                "{}/{}",
                text(&target["calls"]),
                text(&target["calls_max"])
            )),
            Cell::new(text(&target["queued"])),
            Cell::new(text(&target["waiting"])),
        ]
    });
    view::rows_of(&HEAD, rows.collect(), true, "targets")
}
