//! Which runs a command is about: what `run list`, `run groups` and `replay create` have in common.

use clap::Args;
use comfy_table::Cell;
use engine::{Clock, SystemClock};
use model::schedule::parse_span;
use serde_json::Value;

use super::job::Name as JobName;
use super::output;
use super::view::{self, cut, items, moment, text};
use crate::client::{Call, Client, with_query};
use crate::failure::Failure;

const HEADING: &str = "Which runs";

pub(super) const GROUPS_HELP: &str = "\
Errors that differ in numbers, ids and addresses only are one group; <n>, <id> and <address> stand for what differs.
The newest runs are looked at first, up to a bound; a note says if there are older ones.

Examples:
  punctual run groups
  punctual run groups --since 1h --target api.example.com
  punctual run list --state dead --since 1h --error \"cannot be reached\"";

#[derive(Debug, Clone, Default, Args)]
pub(super) struct Find {
    /// Only runs of this job, by id or key
    #[arg(long, help_heading = HEADING)]
    pub job: Option<String>,
    /// Only runs in this state: ready, running, retrying, succeeded, dead, cancelled or skipped
    #[arg(long, help_heading = HEADING)]
    pub state: Vec<String>,
    /// Only slots since so long ago, such as 1h, or runs asked for since
    #[arg(long, value_name = "SPAN", conflicts_with = "from", help_heading = HEADING)]
    pub since: Option<String>,
    /// Only slots from this moment on, or runs asked for since
    #[arg(long, value_name = "MOMENT", help_heading = HEADING)]
    pub from: Option<String>,
    /// Only those before this moment
    #[arg(long, value_name = "MOMENT", help_heading = HEADING)]
    pub to: Option<String>,
    /// Only runs that ended for this reason, such as attempts_spent
    #[arg(long, help_heading = HEADING)]
    pub reason: Vec<String>,
    /// Only runs with this text in the error of their last attempt
    #[arg(long, value_name = "TEXT", help_heading = HEADING)]
    pub error: Option<String>,
    /// Only runs of jobs with this label
    #[arg(long, value_name = "NAME=VALUE", help_heading = HEADING)]
    pub label: Vec<String>,
    /// Only runs of jobs that call this host, with or without its port
    #[arg(long, value_name = "HOST", help_heading = HEADING)]
    pub target: Option<String>,
}

impl Find {
    /// From when on, by the span or the moment that was given.
    pub(super) fn from(&self) -> Result<Option<String>, Failure> {
        let Some(since) = &self.since else {
            return Ok(self.from.clone());
        };
        let span =
            parse_span(since).map_err(|error| Failure::usage(format!("--since: {error}")))?;
        Ok(Some(Clock::now(&SystemClock).minus(span).to_string()))
    }

    pub(super) fn query(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let job = self.job.clone().map(|job| JobName::new(job).named());
        let one = [
            ("job", job),
            ("from", self.from()?),
            ("to", self.to.clone()),
            ("error", self.error.clone()),
            ("target", self.target.clone()),
        ];
        let many = [
            ("state", &self.state),
            ("reason", &self.reason),
            ("label", &self.label),
        ];
        let one = one.into_iter().filter_map(|(name, it)| Some((name, it?)));
        let many = many
            .into_iter()
            .flat_map(|(name, all)| all.iter().map(move |it| (name, it.clone())));
        Ok(one.chain(many).collect())
    }

    /// `punctual run groups`.
    pub(super) async fn groups(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let path = with_query("/v1/runs/groups", &self.query()?);
        let answer = client.send(Call::get(path)).await?;
        view::print(&answer, json, groups)
    }
}

fn groups(answer: &Value) -> Result<(), Failure> {
    let rows = items(&answer["items"]).iter().map(row);
    let head = [
        "RUNS", "JOBS", "FIRST", "LAST", "STATUS", "ERROR", "EXAMPLE",
    ];
    view::rows_of(&head, rows.collect(), true, "runs")?;
    if answer["complete"] == false {
        output::note(&format!(
            "{} runs were read and there are older ones: --to {}",
            text(&answer["scanned"]),
            text(&answer["scanned_to"])
        ));
    }
    Ok(())
}

fn row(group: &Value) -> Vec<Cell> {
    let error = if group["error"].is_string() {
        cut(&text(&group["error"]))
    } else {
        format!("({})", text(&group["reason"]))
    };
    vec![
        Cell::new(text(&group["count"])),
        Cell::new(text(&group["jobs_count"])),
        Cell::new(moment(&group["first_at"], false)),
        Cell::new(moment(&group["last_at"], false)),
        Cell::new(text(&group["status"])),
        Cell::new(error),
        Cell::new(text(&group["example"])),
    ]
}
