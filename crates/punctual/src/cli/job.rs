//! `punctual job …`: create, show and change jobs. A job is named by its id or by its key.

use std::path::PathBuf;

use bytes::Bytes;
use clap::{Args, Subcommand};
use hyper::Method;
use hyper::header::{HeaderName, IF_MATCH};
use serde_json::{Value, json};

use super::explain::{self, Explain};
use super::fields::{Fields, GROUPS, text_of};
use super::slots::{self, Slots};
use super::view::{job as job_view, plan};
use super::{batch, output, view};
use crate::client::{Call, Client, encode, with_query};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
Examples:
  punctual job create --key hello --every 5s --url http://127.0.0.1:8000/ --method GET
  punctual job create --cron \"0 9 * * MON-FRI\" --tz Europe/Berlin --url https://example.com/hook
  punctual job create --in 2h --url https://example.com/hook --payload '{\"hello\": \"world\"}'
  punctual job create --every 10m --after-completion --runs-max 100 --url https://example.com/hook
  punctual job create --cron @daily --ends-at 2027-12-31T23:59:59Z --url https://example.com/ --dry-run
  punctual job create --cron @hourly --exclude holidays --url https://example.com/hook
  punctual job create --file job.json
  echo '{\"schedule\": \"@daily\", \"target\": \"https://example.com/hook\"}' | punctual job create --file -
  punctual job create --batch jobs.ndjson";

const EDIT_HELP: &str = "\
A bound or a list of calendars is taken away by an empty text.

Examples:
  punctual job edit hello --cron \"0 10 * * MON-FRI\" --dry-run
  punctual job edit hello --ends-at 2027-12-31T23:59:59Z
  punctual job edit hello --ends-at \"\" --exclude \"\"
  punctual job edit hello --exclude holidays --exclude freeze
  echo '{\"lane\": \"batch\"}' | punctual job edit hello --file -";

const PAUSE_HELP: &str = "\
Its slots pass as skipped, with the note; `punctual job slots` shows them. It can still be run by hand.

Examples:
  punctual job pause hello --note \"until the new database is up\"
  punctual job resume hello";

const RESUME_HELP: &str = "\
Slots that passed meanwhile are skipped. With --catch-up they are treated as after downtime: the
job's catch_up policy and window decide which of them run.

Examples:
  punctual job resume hello
  punctual job resume hello --catch-up";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Register a job
    #[command(after_help = CREATE_HELP)]
    Create(Box<Create>),
    /// List jobs, the newest first
    List(List),
    /// Show a job
    Show(Name),
    /// Show what became of a job's slots, and what will
    #[command(after_help = slots::HELP)]
    Slots(Slots),
    /// Say why a job is due at a moment, or why not
    #[command(after_help = explain::HELP)]
    Explain(Explain),
    /// Change a job; what is not mentioned stays as it is
    #[command(after_help = EDIT_HELP)]
    Edit(Box<Edit>),
    /// Let a job's slots pass until it is resumed
    #[command(after_help = PAUSE_HELP)]
    Pause(Pause),
    /// Let a paused job go on from now
    #[command(after_help = RESUME_HELP)]
    Resume(Resume),
    /// Run a job now
    Run(RunNow),
    /// Delete a job; runs that have not started are cancelled
    Delete(Name),
}

#[derive(Debug, Args)]
pub struct Name {
    /// The job's id or key
    job: String,
}

#[derive(Debug, Args)]
pub struct Create {
    /// A name of your own for the job, unique among your jobs
    #[arg(long)]
    key: Option<String>,
    /// If a job has this key already, change that one
    #[arg(long, requires = "key")]
    or_update: bool,
    /// Makes the request repeatable: the same key and body create one job
    #[arg(long, value_name = "KEY", conflicts_with = "or_update")]
    idempotency_key: Option<String>,
    /// A file with the whole job as JSON; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "batch", conflicts_with_all = GROUPS)]
    file: Option<PathBuf>,
    /// A file with one job as JSON on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["key", "idempotency_key", "dry_run"], conflicts_with_all = GROUPS)]
    batch: Option<PathBuf>,
    /// Check everything and show what would be created; nothing is written
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fields: Fields,
}

#[derive(Debug, Args)]
pub struct List {
    /// Only jobs in this state: active, paused, finished, invalid or deleted
    #[arg(long)]
    state: Vec<String>,
    /// Only jobs with this label
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Only jobs with this text in their key
    #[arg(long)]
    q: Option<String>,
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub struct Edit {
    #[command(flatten)]
    name: Name,
    /// Another key for the job
    #[arg(long)]
    key: Option<String>,
    /// Refuse unless the job is at this version [default: the version just read]
    #[arg(long, value_name = "VERSION")]
    if_match: Option<u32>,
    /// A file with the changes as JSON; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "key", conflicts_with_all = GROUPS)]
    file: Option<PathBuf>,
    /// Check everything and show what would change; nothing is written
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fields: Fields,
}

#[derive(Debug, Args)]
pub struct Pause {
    #[command(flatten)]
    name: Name,
    /// Why; it stands beside every slot that passes
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    name: Name,
    /// Let the job's catch-up policy decide about the slots that passed
    #[arg(long)]
    catch_up: bool,
}

#[derive(Debug, Args)]
pub struct RunNow {
    #[command(flatten)]
    name: Name,
    /// A payload for this run alone, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Start even while another run of the job lives
    #[arg(long)]
    force: bool,
}

pub async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.execute(client, json).await,
        Command::List(list) => list.execute(client, json).await,
        Command::Show(name) => {
            let answer = client.send(Call::get(name.path())).await?;
            view::print(&answer, json, job_view::job)
        }
        Command::Slots(slots) => slots.execute(client, json).await,
        Command::Explain(explain) => explain.execute(client, json).await,
        Command::Edit(edit) => edit.execute(client, json).await,
        Command::Pause(Pause { name, note }) => {
            let body = note.map(|note| json!({ "note": note }));
            name.ask("pause", body, client, json).await
        }
        Command::Resume(Resume { name, catch_up }) => {
            let body = catch_up.then(|| json!({ "catch_up": true }));
            name.ask("resume", body, client, json).await
        }
        Command::Run(run) => run.execute(client, json).await,
        Command::Delete(name) => {
            let answer = client.send(Call::new(Method::DELETE, name.path())).await?;
            view::print(&answer, json, |answer| job_view::changed("deleted", answer))
        }
    }
}

impl Name {
    pub fn new(job: String) -> Self {
        Self { job }
    }

    fn is_id(&self) -> bool {
        self.job.starts_with("job_")
    }

    fn path(&self) -> String {
        let name = encode(&self.job);
        if self.is_id() {
            format!("/v1/jobs/{name}")
        } else {
            format!("/v1/jobs/by-key/{name}")
        }
    }

    /// The path by id, which is looked up if the job is named by key.
    pub async fn path_by_id(&self, client: &Client) -> Result<String, Failure> {
        if self.is_id() {
            return Ok(self.path());
        }
        let answer = client.send(Call::get(self.path())).await?;
        path_of(&view::parse(&answer)?)
    }

    async fn ask(
        &self,
        what: &'static str,
        body: Option<Value>,
        client: &Client,
        json: bool,
    ) -> Result<(), Failure> {
        let path = self.path_by_id(client).await?;
        let mut call = Call::post(format!("{path}/{what}"));
        if let Some(body) = body {
            call = call.json(body.to_string());
        }
        let answer = client.send(call).await?;
        let done = if what == "pause" { "paused" } else { "resumed" };
        view::print(&answer, json, |answer| job_view::changed(done, answer))
    }
}

fn path_of(job: &Value) -> Result<String, Failure> {
    let id = job["id"]
        .as_str()
        .ok_or_else(|| Failure::refused("the server's answer has no id"))?;
    Ok(format!("/v1/jobs/{}", encode(id)))
}

/// A path whose request is only looked at, in a dry run.
fn written_or_not(path: String, dry_run: bool) -> String {
    match dry_run {
        true => with_query(&path, &[("dry_run", "true".to_owned())]),
        false => path,
    }
}

impl Create {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        if let Some(path) = &self.batch {
            return batch::execute(path, client, json).await;
        }
        let body = match &self.file {
            Some(path) => Bytes::from(text_of(path)?),
            None if self.or_update => self.fields.to_create(None)?,
            None => self.fields.to_create(self.key.as_deref())?,
        };
        let (method, path) = match (&self.key, self.or_update) {
            (Some(key), true) => (Method::PUT, format!("/v1/jobs/by-key/{}", encode(key))),
            (Some(_) | None, _) => (Method::POST, "/v1/jobs".to_owned()),
        };
        let stands = match self.dry_run && self.or_update {
            true => client.find(Call::get(path.as_str())).await?,
            false => None,
        };
        let mut call = Call::new(method, written_or_not(path, self.dry_run)).json(body);
        if let Some(key) = &self.idempotency_key {
            call = call.header(HeaderName::from_static("idempotency-key"), key);
        }
        let answer = client.send(call).await?;
        let done = if self.or_update { "stored" } else { "created" };
        match (self.dry_run, stands) {
            (true, Some(stands)) => plan::would_change(&stands, &answer, json),
            (true, None) => plan::would_create(&answer, json),
            (false, _) => view::print(&answer, json, |answer| job_view::changed(done, answer)),
        }
    }
}

impl List {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut query = Vec::new();
        query.extend(self.state.iter().map(|state| ("state", state.clone())));
        // Written as for `create`; in a query the name ends with a colon.
        query.extend(
            self.label
                .iter()
                .map(|label| ("label", label.replacen('=', ":", 1))),
        );
        query.extend(self.q.iter().map(|q| ("q", q.clone())));
        view::list(client, "/v1/jobs", query, &self.page, json, job_view::jobs).await
    }
}

impl Edit {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let stands = client.send(Call::get(self.name.path())).await?;
        let job = view::parse(&stands)?;
        let body = match &self.file {
            Some(path) => Bytes::from(text_of(path)?),
            None => self.fields.to_edit(&job, self.key.as_deref())?,
        };
        // Between our reading and our writing someone else may have changed the job.
        let version = self.if_match.map(u64::from).or(job["version"].as_u64());
        let path = written_or_not(path_of(&job)?, self.dry_run);
        let mut call = Call::new(Method::PATCH, path).json(body);
        if let Some(version) = version {
            call = call.header(IF_MATCH, format!("\"{version}\""));
        }
        let answer = client.send(call).await?;
        if self.dry_run {
            return plan::would_change(&stands, &answer, json);
        }
        view::print(&answer, json, |answer| job_view::changed("changed", answer))
    }
}

impl RunNow {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let path = self.name.path_by_id(client).await?;
        let mut call = Call::post(format!("{path}/run"));
        let mut body = Vec::new();
        if let Some(payload) = &self.payload {
            let value: &serde_json::value::RawValue = serde_json::from_str(payload)
                .map_err(|error| Failure::usage(format!("the payload is not JSON: {error}")))?;
            body.push(format!("\"payload\":{value}"));
        }
        if self.force {
            body.push("\"force\":true".to_owned());
        }
        if !body.is_empty() {
            call = call.json(format!("{{{}}}", body.join(",")));
        }
        let answer = client.send(call).await?;
        view::print(&answer, json, |answer| {
            output::line(&format!("started {}", view::text(&answer["id"])))
        })
    }
}
