//! `punctual run …`: what came of slots.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use clap::{Args, Subcommand};
use futures_util::{StreamExt, TryStreamExt};
use serde_json::Value;

use super::job::{Name as JobName, Start, started};
use super::view::run as run_view;
use super::{output, view};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

/// Jobs that are read at once.
const AT_ONCE: usize = 8;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List runs, the newest first
    List(List),
    /// Show a run and its attempts
    Show(Name),
    /// End a run that has not ended
    Cancel(Name),
    /// Make a new run from one that has ended; the old one stays as it was
    #[command(visible_alias = "retry")]
    Replay(Replay),
}

#[derive(Debug, Args)]
pub struct Name {
    /// The run's id
    run: String,
}

#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    start: Start,
}

#[derive(Debug, Args)]
pub struct List {
    /// Only runs of this job, by id or key
    #[arg(long)]
    job: Option<String>,
    /// Only runs in this state: ready, running, retrying, succeeded, dead, cancelled or skipped
    #[arg(long)]
    state: Vec<String>,
    #[command(flatten)]
    page: view::PageArgs,
}

pub async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::List(list) => list.execute(client, json).await,
        Command::Show(name) => {
            let answer = client.send(Call::get(name.path())).await?;
            if json {
                return output::json(&answer);
            }
            let run = view::parse(&answer)?;
            let jobs = Jobs::of(client, std::slice::from_ref(&run)).await?;
            run_view::run(&run, &jobs)
        }
        Command::Cancel(name) => {
            let answer = client
                .send(Call::post(format!("{}/cancel", name.path())))
                .await?;
            view::print(&answer, json, |run| {
                output::line(&format!(
                    "{} is {}",
                    view::text(&run["id"]),
                    view::text(&run["state"])
                ))
            })
        }
        Command::Replay(Replay { name, start }) => {
            let call = Call::post(format!("{}/replay", name.path()));
            let answer = client.send(start.put(call)?).await?;
            view::print(&answer, json, started)
        }
    }
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/runs/{}", encode(&self.run))
    }
}

impl List {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let job = self
            .job
            .clone()
            .map(|job| ("job", JobName::new(job).named()));
        let states = self.state.iter().map(|state| ("state", state.clone()));
        let query: Vec<_> = job.into_iter().chain(states).collect();
        let show = async |items: &[Value], first: bool| {
            run_view::runs(items, &Jobs::of(client, items).await?, first)
        };
        view::list_with(client, "/v1/runs", query, &self.page, json, show).await
    }
}

/// The jobs of some runs, by their ids; those that are still there.
#[derive(Debug, Default)]
pub struct Jobs(BTreeMap<String, Value>);

impl Jobs {
    /// Reads each of them once, a few at a time.
    async fn of(client: &Client, runs: &[Value]) -> Result<Self, Failure> {
        let ids: BTreeSet<String> = runs.iter().map(|run| view::text(&run["job"])).collect();
        let read = ids.into_iter().map(|id| async move {
            let call = Call::get(JobName::new(id.clone()).path());
            Ok::<_, Failure>((id, client.find(call).await?))
        });
        let answers: Vec<(String, Option<Bytes>)> = futures_util::stream::iter(read)
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let parsed = answers
            .into_iter()
            .filter_map(|(id, answer)| Some((id, view::parse(&answer?).ok()?)));
        Ok(Self(parsed.collect()))
    }

    /// The job of a run.
    pub fn job(&self, run: &Value) -> Option<&Value> {
        self.0.get(run["job"].as_str()?)
    }

    /// The key of a run's job; its id if it has none.
    pub fn key(&self, run: &Value) -> String {
        let key = self
            .job(run)
            .map(|job| &job["key"])
            .filter(|key| key.is_string());
        view::text(key.unwrap_or(&run["job"]))
    }
}
