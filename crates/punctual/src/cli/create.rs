//! `punctual job create`: one job from flags or from a file, many from a batch.

use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use hyper::header::HeaderName;

use super::fields::Fields;
use super::file::JobFile;
use super::job::{Name, dry};
use super::view::{job as job_view, plan};
use super::{batch, view};
use crate::client::{Call, Client};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
--or-update changes the job of that key as `job edit` does: what is not said stays. If there is none, it is created.

Examples:
  punctual job create --key hello --every 5s --url http://127.0.0.1:8000/ --method GET
  punctual job create --cron \"0 9 * * MON-FRI\" --timezone Europe/Berlin --url https://example.com/hook
  punctual job create --in 2h --url https://example.com/hook --payload '{\"hello\": \"world\"}'
  punctual job create --every 10m --after-completion --runs-max 100 --url https://example.com/hook
  punctual job create --cron @daily --ends-at 2027-12-31T23:59:59Z --url https://example.com/ --dry-run
  punctual job create --cron @hourly --exclude holidays --url https://example.com/hook
  punctual job create --cron @daily --command /usr/bin/pg_dump --arg=--file=/srv/shop.sql --arg shop --env PGHOST=db
  punctual job create --file job.json
  punctual job show hello --json | punctual job create --file - --key hello-2
  punctual job create --key hello --or-update --timeout 30s
  echo '{\"schedule\": \"@daily\", \"target\": \"https://example.com/hook\"}' | punctual job create --file -
  punctual job create --batch jobs.ndjson";

/// How often a create-or-update looks again when others create and delete under the same key.
const TRIES_MAX: u32 = 5;

#[derive(Debug, Args)]
pub(super) struct Create {
    /// A name of your own for the job, unique among your jobs; goes before that of a file
    #[arg(long)]
    key: Option<String>,
    /// If a job has this key already, change that one: what is not said stays
    #[arg(long)]
    or_update: bool,
    /// Makes the request repeatable: the same key and body create one job
    #[arg(long, value_name = "KEY", conflicts_with = "or_update")]
    idempotency_key: Option<String>,
    /// A file with the job as JSON, all of it but its key; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    file: Option<PathBuf>,
    /// A file with one job as JSON on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["key", "or_update", "idempotency_key", "dry_run"])]
    batch: Option<PathBuf>,
    /// Check everything and show what would be created; nothing is written
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fields: Fields,
}

impl Create {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        if let Some(path) = &self.batch {
            self.fields.none_beside("--batch")?;
            return batch::execute(path, client, json).await;
        }
        let file = JobFile::beside(&self.fields, self.file.as_deref())?;
        if self.or_update {
            self.create_or_update(file.as_ref(), client, json).await?;
        } else {
            let key = self.key.as_deref();
            self.create(file.as_ref(), key, client, json).await?;
        }
        if let Some(file) = file {
            file.note();
        }
        Ok(())
    }

    async fn create(
        &self,
        file: Option<&JobFile>,
        key: Option<&str>,
        client: &Client,
        json: bool,
    ) -> Result<(), Failure> {
        let body = match file {
            Some(file) => file.body(key)?,
            None => self.fields.to_create(key)?,
        };
        let path = dry("/v1/jobs".to_owned(), self.dry_run);
        let mut call = Call::post(path).json(body).of_file(file.is_some());
        if let Some(key) = &self.idempotency_key {
            call = call.header(HeaderName::from_static("idempotency-key"), key);
        }
        let answer = client.send(call).await?;
        if self.dry_run {
            return plan::would_create(&answer, json);
        }
        view::print(&answer, json, |answer| job_view::changed("created", answer))
    }

    async fn create_or_update(
        &self,
        file: Option<&JobFile>,
        client: &Client,
        json: bool,
    ) -> Result<(), Failure> {
        let key = self.key.clone().or_else(|| file.and_then(JobFile::key));
        let key = key.ok_or_else(|| Failure::usage("--or-update needs the job's --key"))?;
        let path = Name::of_key(&key).path();
        let mut tries = 0;
        loop {
            tries += 1;
            let (done, again) = match client.find(Call::get(path.as_str())).await? {
                Some(stands) => (
                    self.update(file, &path, &stands, client, json).await,
                    "job-not-found",
                ),
                None => (
                    self.create(file, Some(&key), client, json).await,
                    "key-taken",
                ),
            };
            match done {
                // Others created or deleted it meanwhile.
                Err(failure) if failure.is_problem(again) && tries < TRIES_MAX => {}
                done => return done,
            }
        }
    }

    async fn update(
        &self,
        file: Option<&JobFile>,
        path: &str,
        stands: &[u8],
        client: &Client,
        json: bool,
    ) -> Result<(), Failure> {
        let body = match file {
            Some(file) => file.body(self.key.as_deref())?,
            None => self.fields.to_json(None)?,
        };
        let call = Call::new(Method::PATCH, dry(path.to_owned(), self.dry_run));
        let call = call.json(body).of_file(file.is_some());
        let answer = client.send(call).await?;
        if self.dry_run {
            return plan::would_change(stands, &answer, json);
        }
        view::print(&answer, json, |answer| job_view::changed("changed", answer))
    }
}
