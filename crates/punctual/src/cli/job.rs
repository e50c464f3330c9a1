//! `punctual job …`: create, show and change jobs. A job is named by its id or by its key.

use std::path::PathBuf;

use bytes::Bytes;
use clap::{Args, Subcommand};
use hyper::Method;
use hyper::header::{HeaderName, IF_MATCH};
use serde_json::Value;

use super::batch;
use super::fields::{Fields, text_of};
use super::{output, view};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
Examples:
  punctual job create --key hello --every 5s --url http://127.0.0.1:8000/ --method GET
  punctual job create --cron \"0 9 * * MON-FRI\" --tz Europe/Berlin --url https://example.com/hook
  punctual job create --in 2h --url https://example.com/hook --payload '{\"hello\": \"world\"}'
  punctual job create --file job.json
  echo '{\"schedule\": \"@daily\", \"target\": \"https://example.com/hook\"}' | punctual job create --file -
  punctual job create --batch jobs.ndjson";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Register a job
    #[command(after_help = CREATE_HELP)]
    Create(Box<Create>),
    /// List jobs, the newest first
    List(List),
    /// Show a job
    Show(Name),
    /// Change a job; what is not mentioned stays as it is
    Edit(Box<Edit>),
    /// Let a job's slots pass until it is resumed
    Pause(Name),
    /// Let a paused job go on from now
    Resume(Name),
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "Fields", "ScheduleFields", "TargetFields"])]
    file: Option<PathBuf>,
    /// A file with one job as JSON on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["key", "idempotency_key", "Fields", "ScheduleFields", "TargetFields"])]
    batch: Option<PathBuf>,
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "Fields", "ScheduleFields", "TargetFields"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    fields: Fields,
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
            view::print(&answer, json, view::job)
        }
        Command::Edit(edit) => edit.execute(client, json).await,
        Command::Pause(name) => name.ask("pause", client, json).await,
        Command::Resume(name) => name.ask("resume", client, json).await,
        Command::Run(run) => run.execute(client, json).await,
        Command::Delete(name) => {
            let answer = client.send(Call::new(Method::DELETE, name.path())).await?;
            view::print(&answer, json, |answer| view::changed("deleted", answer))
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

    /// The job as it stands.
    async fn read(&self, client: &Client) -> Result<Value, Failure> {
        let answer = client.send(Call::get(self.path())).await?;
        view::parse(&answer)
    }

    /// The path by id, which is looked up if the job is named by key.
    pub async fn path_by_id(&self, client: &Client) -> Result<String, Failure> {
        if self.is_id() {
            return Ok(self.path());
        }
        let job = self.read(client).await?;
        path_of(&job)
    }

    async fn ask(&self, what: &'static str, client: &Client, json: bool) -> Result<(), Failure> {
        let path = self.path_by_id(client).await?;
        let answer = client.send(Call::post(format!("{path}/{what}"))).await?;
        let done = if what == "pause" { "paused" } else { "resumed" };
        view::print(&answer, json, |answer| view::changed(done, answer))
    }
}

fn path_of(job: &Value) -> Result<String, Failure> {
    let id = job["id"]
        .as_str()
        .ok_or_else(|| Failure::refused("the server's answer has no id"))?;
    Ok(format!("/v1/jobs/{}", encode(id)))
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
        let mut call = match (&self.key, self.or_update) {
            (Some(key), true) => Call::new(Method::PUT, format!("/v1/jobs/by-key/{}", encode(key))),
            (Some(_) | None, _) => Call::post("/v1/jobs"),
        }
        .json(body);
        if let Some(key) = &self.idempotency_key {
            call = call.header(HeaderName::from_static("idempotency-key"), key);
        }
        let answer = client.send(call).await?;
        let done = if self.or_update { "stored" } else { "created" };
        view::print(&answer, json, |answer| view::changed(done, answer))
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
        view::list(client, "/v1/jobs", query, &self.page, json, view::jobs).await
    }
}

impl Edit {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let job = self.name.read(client).await?;
        let body = match &self.file {
            Some(path) => Bytes::from(text_of(path)?),
            None => self.fields.to_edit(&job, self.key.as_deref())?,
        };
        // Between our reading and our writing someone else may have changed the job.
        let version = self.if_match.map(u64::from).or(job["version"].as_u64());
        let mut call = Call::new(Method::PATCH, path_of(&job)?).json(body);
        if let Some(version) = version {
            call = call.header(IF_MATCH, format!("\"{version}\""));
        }
        let answer = client.send(call).await?;
        view::print(&answer, json, |answer| view::changed("changed", answer))
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
