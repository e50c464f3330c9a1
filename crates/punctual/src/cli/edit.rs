//! `punctual job edit`: what is said changes, what is not said stays.

use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use hyper::header::IF_MATCH;

use super::fields::Fields;
use super::file::JobFile;
use super::job::{Name, dry};
use super::view::{self, job as job_view, plan};
use crate::client::{Call, Client};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
What is not said stays as it is. An empty text takes away what stands, or sets it back to its
default; headers and labels are changed by name.

Examples:
  punctual job edit hello --cron \"0 10 * * MON-FRI\" --dry-run
  punctual job edit hello --timezone Europe/Berlin
  punctual job edit hello --ends-at \"\" --exclude \"\"
  punctual job edit hello --label team=ops --label old= --header \"X-Team: ops\"
  punctual job edit hello --exclude holidays --exclude freeze
  echo '{\"lane\": \"batch\"}' | punctual job edit hello --file -";

#[derive(Debug, Args)]
pub(super) struct Edit {
    #[command(flatten)]
    name: Name,
    /// Another key for the job; an empty text takes it away
    #[arg(long)]
    key: Option<String>,
    /// Refuse unless the job is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<u32>,
    /// A file with the changes as JSON; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    file: Option<PathBuf>,
    /// Check everything and show what would change; nothing is written
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fields: Fields,
}

impl Edit {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let file = JobFile::beside(&self.fields, self.file.as_deref())?;
        let body = match &file {
            Some(file) => file.body(None)?,
            None => self.fields.to_edit(self.key.as_deref())?,
        };
        let stands = if self.dry_run {
            Some(client.send(Call::get(self.name.path())).await?)
        } else {
            None
        };
        let path = dry(self.name.path(), self.dry_run);
        let mut call = Call::new(Method::PATCH, path)
            .json(body)
            .of_file(file.is_some());
        if let Some(version) = self.if_match {
            call = call.header(IF_MATCH, format!("\"{version}\""));
        }
        let answer = client.send(call).await?;
        match stands {
            Some(stands) => plan::would_change(&stands, &answer, json)?,
            None => view::print(&answer, json, |answer| job_view::changed("changed", answer))?,
        }
        if let Some(file) = file {
            file.note();
        }
        Ok(())
    }
}
