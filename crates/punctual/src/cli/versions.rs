//! What a job was: `job versions`, `job show --version`, `job revert`.

use clap::Args;
use comfy_table::Cell;
use hyper::header::IF_MATCH;
use serde_json::{Value, json};

use super::job::{Name, dry};
use super::view::{self, cut, job as job_view, moment, plan, text};
use crate::client::{Call, Client};
use crate::failure::Failure;

pub(super) const REVERT_HELP: &str = "\
This is an edit: the job gets a new version with the key and the whole definition of the old one.

Examples:
  punctual job versions hello
  punctual job show hello --version 3
  punctual job revert hello --to 3 --dry-run
  punctual job revert hello --to 3";

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    name: Name,
    /// As it was at this version
    #[arg(long, value_name = "NUMBER")]
    version: Option<u32>,
}

#[derive(Debug, Args)]
pub(super) struct Versions {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct Revert {
    #[command(flatten)]
    name: Name,
    /// The version to go back to
    #[arg(long, value_name = "NUMBER")]
    to: u32,
    /// Refuse unless the job is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<u32>,
    /// Check everything, show what would be, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Show {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let Some(version) = self.version else {
            let answer = client.send(Call::get(self.name.path())).await?;
            return view::print(&answer, json, job_view::job);
        };
        let path = format!("{}/versions/{version}", self.name.path());
        let answer = client.send(Call::get(path)).await?;
        view::print(&answer, json, |answer| job_view::job(&answer["job"]))
    }
}

impl Versions {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let path = format!("{}/versions", self.name.path());
        view::list(client, &path, Vec::new(), &self.page, json, versions).await
    }
}

impl Revert {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let stands = if self.dry_run {
            Some(client.send(Call::get(self.name.path())).await?)
        } else {
            None
        };
        let path = dry(format!("{}/revert", self.name.path()), self.dry_run);
        let mut call = Call::post(path).json(json!({ "to": self.to }).to_string());
        if let Some(version) = self.if_match {
            call = call.header(IF_MATCH, format!("\"{version}\""));
        }
        let answer = client.send(call).await?;
        match stands {
            Some(stands) => plan::would_change(&stands, &answer, json),
            None => view::print(&answer, json, |answer| {
                job_view::changed("reverted", answer)
            }),
        }
    }
}

fn versions(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|version| {
        let changed = version["changed"].as_array();
        let changed: Vec<String> = changed.into_iter().flatten().map(text).collect();
        vec![
            Cell::new(text(&version["version"])),
            Cell::new(moment(&version["made_at"], false)),
            Cell::new(cut(&text(&version["made_by"]))),
            Cell::new(cut(&changed.join(", "))),
        ]
    });
    let head = ["VERSION", "MADE", "BY", "CHANGED"];
    view::rows_of(&head, rows.collect(), first, "versions")
}
