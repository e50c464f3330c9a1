//! `punctual audit …`: who changed what.

use clap::{Args, Subcommand};
use comfy_table::Cell;
use http_body_util::BodyExt;
use serde_json::Value;

use super::output;
use super::view::{self, cut, moment, text};
use crate::client::{Client, with_query};
use crate::failure::Failure;

const HELP: &str = "\
Examples:
  punctual audit list --subject job_0192f0c1a2b37def8123456789abcdef
  punctual audit list --action job.delete --since 2026-11-01T00:00:00Z
  punctual audit export > audit.ndjson";

const VERIFY_HELP: &str = "\
Each second a node seals what was entered, and logs the head of the chain: keep those lines where the owner of the
database cannot write. With --head the log must still have that segment, so that a cut end shows.

The exit code is 1 when something is wrong; the first thing that is wrong is named.

Examples:
  punctual audit verify
  punctual audit verify --head 12:9a8292e83b4e044b0ded5bc59c521e2de136eba100a0ec1c1927e3ba02200f4e";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List changes, newest first
    #[command(after_help = HELP)]
    List(List),
    /// Print every change, oldest first, one JSON document per line
    Export(Filter),
    /// Check that nobody has rewritten the log; for root
    #[command(after_help = VERIFY_HELP)]
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(super) struct Filter {
    /// Whose things were changed, by the tenant's name; for root only, which sees all otherwise
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// From this moment on, such as 2026-11-01T00:00:00Z
    #[arg(long, value_name = "MOMENT")]
    since: Option<String>,
    /// Before this moment
    #[arg(long, value_name = "MOMENT")]
    until: Option<String>,
    /// What was done, such as job.edit
    #[arg(long)]
    action: Option<String>,
    /// Who did it, by name
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// With which key, by its id
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// To what: an id, or the name of what has none
    #[arg(long)]
    subject: Option<String>,
}

impl Filter {
    fn query(self) -> Vec<(&'static str, String)> {
        let all = [
            ("tenant", self.tenant),
            ("since", self.since),
            ("until", self.until),
            ("action", self.action),
            ("actor", self.actor),
            ("key", self.key),
            ("subject", self.subject),
        ];
        let said = all.into_iter().filter_map(|(name, it)| Some((name, it?)));
        said.collect()
    }
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    page: view::PageArgs,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::List(List { filter, page }) => {
            view::list(client, "/v1/audit", filter.query(), &page, json, entries).await
        }
        Command::Export(filter) => export(client, filter).await,
        Command::Verify(verify) => verify.execute(client, json).await,
    }
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// A head that was logged: the segment's number and its code
    #[arg(long, value_name = "NUMBER:CODE")]
    head: Option<String>,
}

impl Verify {
    async fn execute(self, client: &Client, json: bool) -> Result<(), Failure> {
        let query: Vec<_> = self.head.map(|head| ("head", head)).into_iter().collect();
        let path = with_query("/v1/audit/verify", &query);
        let mut answer = client.download(&path).await?.into_body();
        let bar = output::progress(None, "segments");
        let (mut rest, mut last) = (Vec::new(), Value::Null);
        while let Some(frame) = answer.frame().await {
            let frame = frame.map_err(|error| client.silent(&format!("broke off: {error}")))?;
            rest.extend(frame.into_data().unwrap_or_default());
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                last = view::parse(&line)?;
                bar.set_position(last["segments"].as_u64().unwrap_or(0));
            }
        }
        bar.finish_and_clear();
        if json {
            output::json(last.to_string().as_bytes())?;
        }
        verdict(&last, json)
    }
}

fn verdict(last: &Value, json: bool) -> Result<(), Failure> {
    if last["whole"] != true {
        let is_wrong = last["wrong"].is_object();
        let wrong = &last[if is_wrong { "wrong" } else { "unchecked" }];
        let part = |name: &str| {
            let number = wrong[name].as_u64();
            number.map_or(String::new(), |number| format!("{name} {number}: "))
        };
        let why = wrong["why"].as_str().unwrap_or("the check broke off");
        let place = format!("{}{}", part("segment"), part("entry"));
        return Err(Failure::refused(format!("{place}{}", output::clean(why))));
    }
    if json {
        return Ok(());
    }
    output::line(&format!(
        "whole: {} segments with {} entries, {} not sealed yet",
        text(&last["segments"]),
        text(&last["entries"]),
        text(&last["unsealed"]),
    ))?;
    match last["head"].as_str() {
        Some(head) => output::line(&format!("head {}", output::clean(head))),
        None => Ok(()),
    }
}

/// As it comes: memory does not grow with the log.
async fn export(client: &Client, filter: Filter) -> Result<(), Failure> {
    let path = with_query("/v1/audit/export", &filter.query());
    let mut answer = client.download(&path).await?.into_body();
    while let Some(frame) = answer.frame().await {
        let frame = frame.map_err(|error| client.silent(&format!("broke off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            output::bytes(&data)?;
        }
    }
    Ok(())
}

fn entries(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|entry| {
        vec![
            Cell::new(text(&entry["seq"])),
            Cell::new(moment(&entry["at"], false)),
            Cell::new(text(&entry["tenant"])),
            Cell::new(cut(&text(&entry["actor"]))),
            Cell::new(text(&entry["address"])),
            Cell::new(text(&entry["action"])),
            Cell::new(cut(&text(&entry["subject"]))),
        ]
    });
    let head = [
        "NO", "AT", "TENANT", "ACTOR", "ADDRESS", "ACTION", "SUBJECT",
    ];
    view::rows_of(&head, rows.collect(), first, "changes")
}
