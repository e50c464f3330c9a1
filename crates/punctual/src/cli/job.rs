//! `punctual job …`: create, show and change jobs. A job is named by its id or by its key.

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};

use super::create::{self, Create};
use super::edit::{self, Edit};
use super::explain::{self, Explain};
use super::replay::{self, Backfill};
use super::slots::{self, Slots};
use super::versions::{REVERT_HELP, Revert, Show, Versions};
use super::view::job as job_view;
use super::{output, view};
use crate::client::{Call, Client, encode, with_query};
use crate::failure::Failure;

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

const REPLAY_HELP: &str = "\
The dead run stays as it was; the new one has its slot and its payload. `punctual run replay` replays
any run that has ended.

Examples:
  punctual job replay hello
  punctual job retry hello --payload '{\"again\": true}'";

const DELETE_HELP: &str = "\
Runs that have not started are cancelled. An attempt that is under way is broken off and its run is
cancelled: the target may have done its work, or a part of it. What has ended stays in history until
its keep time is over. The key is free at once.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Register a job
    #[command(after_help = create::HELP)]
    Create(Box<Create>),
    /// List jobs, the newest first
    List(List),
    /// Show a job
    Show(Show),
    /// Show what a job was, who changed it and what
    Versions(Versions),
    /// Make a job what it was at a version
    #[command(after_help = REVERT_HELP)]
    Revert(Revert),
    /// Show what became of a job's slots, and what will
    #[command(after_help = slots::HELP)]
    Slots(Slots),
    /// Say why a job is due at a moment, or why not
    #[command(after_help = explain::HELP)]
    Explain(Explain),
    /// Change a job; what is not mentioned stays as it is
    #[command(after_help = edit::HELP)]
    Edit(Box<Edit>),
    /// Let a job's slots pass until it is resumed
    #[command(after_help = PAUSE_HELP)]
    Pause(Pause),
    /// Let a paused job go on from now
    #[command(after_help = RESUME_HELP)]
    Resume(Resume),
    /// Run a job now
    Run(RunNow),
    /// Make a new run from the job's last dead one
    #[command(visible_alias = "retry", after_help = REPLAY_HELP)]
    Replay(RunNow),
    /// Run past slots of a job on purpose
    #[command(after_help = replay::BACKFILL_HELP)]
    Backfill(Backfill),
    /// Delete a job, and cancel its runs that have not ended
    #[command(after_help = DELETE_HELP)]
    Delete(Name),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The job's id or key
    job: String,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only jobs in this state: active, paused, finished, invalid or deleted
    #[arg(long)]
    state: Vec<String>,
    /// Only jobs with this label
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Only jobs with this text in their key
    #[arg(long)]
    q: Option<String>,
    /// Only jobs that belong to this owner; a page may be short and have another after it
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    #[command(flatten)]
    name: Name,
    /// Why; it stands beside every slot that passes
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Resume {
    #[command(flatten)]
    name: Name,
    /// Let the job's catch-up policy decide about the slots that passed
    #[arg(long)]
    catch_up: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunNow {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    start: Start,
}

/// What a run by hand and a replay may carry.
#[derive(Debug, Args)]
pub(super) struct Start {
    /// A payload for this run alone, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Start even while another run of the job lives
    #[arg(long)]
    force: bool,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.execute(client, json).await,
        Command::List(list) => list.execute(client, json).await,
        Command::Show(show) => show.execute(client, json).await,
        Command::Versions(versions) => versions.execute(client, json).await,
        Command::Revert(revert) => revert.execute(client, json).await,
        Command::Slots(slots) => slots.execute(client, json).await,
        Command::Explain(explain) => explain.execute(client, json).await,
        Command::Edit(edit) => edit.execute(client, json).await,
        Command::Pause(Pause { name, note }) => {
            let body = note.map(|note| json!({ "note": note }));
            name.change("pause", "paused", body, client, json).await
        }
        Command::Resume(Resume { name, catch_up }) => {
            let body = catch_up.then(|| json!({ "catch_up": true }));
            name.change("resume", "resumed", body, client, json).await
        }
        Command::Run(run) => run.execute("run", client, json).await,
        Command::Replay(run) => run.execute("replay", client, json).await,
        Command::Backfill(backfill) => backfill.execute(client, json).await,
        Command::Delete(name) => {
            let answer = client.send(Call::new(Method::DELETE, name.path())).await?;
            view::print(&answer, json, |answer| job_view::changed("deleted", answer))
        }
    }
}

impl Name {
    pub(super) fn of_key(key: &str) -> Self {
        Self {
            job: format!("key:{key}"),
        }
    }

    pub(super) fn new(job: String) -> Self {
        Self { job }
    }

    /// The job as paths and queries name it: its id, or `key:` and its key. No key begins as ids do.
    pub(super) fn named(&self) -> String {
        if self.job.starts_with("job_") || self.job.starts_with("key:") {
            self.job.clone()
        } else {
            format!("key:{}", self.job)
        }
    }

    pub(super) fn path(&self) -> String {
        format!("/v1/jobs/{}", encode(&self.named()))
    }

    async fn change(
        &self,
        verb: &str,
        done: &str,
        body: Option<Value>,
        client: &Client,
        json: bool,
    ) -> Result<(), Failure> {
        let mut call = Call::post(format!("{}/{verb}", self.path()));
        if let Some(body) = body {
            call = call.json(body.to_string());
        }
        let answer = client.send(call).await?;
        view::print(&answer, json, |answer| job_view::changed(done, answer))
    }
}

/// A path whose request is only looked at, in a dry run.
pub(super) fn dry(path: String, dry_run: bool) -> String {
    if dry_run {
        with_query(&path, &[("dry_run", "true".to_owned())])
    } else {
        path
    }
}

impl List {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut query = Vec::new();
        query.extend(self.state.iter().map(|state| ("state", state.clone())));
        query.extend(self.label.iter().map(|label| ("label", label.clone())));
        query.extend(self.q.iter().map(|q| ("q", q.clone())));
        query.extend(self.owner.iter().map(|owner| ("owner", owner.clone())));
        view::list(client, "/v1/jobs", query, &self.page, json, job_view::jobs).await
    }
}

impl RunNow {
    async fn execute(&self, verb: &str, client: &Client, json: bool) -> Result<(), Failure> {
        let call = Call::post(format!("{}/{verb}", self.name.path()));
        let answer = client.send(self.start.put(call)?).await?;
        view::print(&answer, json, started)
    }
}

impl Start {
    /// Writes the body, if there is anything to say.
    pub(super) fn put(&self, call: Call) -> Result<Call, Failure> {
        let mut body = Vec::new();
        if let Some(payload) = &self.payload {
            let value: &serde_json::value::RawValue = serde_json::from_str(payload)
                .map_err(|error| Failure::usage(format!("the payload is not JSON: {error}")))?;
            body.push(format!("\"payload\":{value}"));
        }
        if self.force {
            body.push("\"force\":true".to_owned());
        }
        if body.is_empty() {
            return Ok(call);
        }
        Ok(call.json(format!("{{{}}}", body.join(","))))
    }
}

/// Says which run was made, and from which.
pub(super) fn started(run: &Value) -> Result<(), Failure> {
    let mut line = format!("started {}", view::text(&run["id"]));
    if run["replay_of"].is_string() {
        line.push_str(&format!(" from {}", view::text(&run["replay_of"])));
    }
    output::line(&line)
}
