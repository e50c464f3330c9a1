//! `punctual run …`: what came of slots.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use clap::{Args, Subcommand};
use futures_util::{StreamExt, TryStreamExt};
use serde_json::Value;

use super::find::{self, Find};
use super::job::{Name as JobName, Start, started};
use super::view::run as run_view;
use super::{output, outside, run_log, view};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

/// Jobs that are read at once.
const AT_ONCE: usize = 8;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List runs, the newest first
    List(List),
    /// Count dead runs by their errors
    #[command(after_help = find::GROUPS_HELP)]
    Groups(Find),
    /// Show a run and its attempts
    Show(Name),
    /// End a run that has not ended
    Cancel(Name),
    /// Start a run at once that waits for something outside of its job
    Wake(Name),
    /// Make a new run from one that has ended; the old one stays as it was
    #[command(visible_alias = "retry")]
    Replay(Replay),
    /// Say how an attempt went that was taken over
    #[command(after_help = outside::REPORT_HELP)]
    Report(outside::Report),
    /// Say that the work of an attempt goes on; prints whether it is to stop
    #[command(after_help = outside::REPORT_HELP)]
    Heartbeat(outside::Heartbeat),
    /// Print what a run has said of its work, and with --follow what it goes on to say
    #[command(after_help = run_log::HELP)]
    Log(run_log::Log),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The run's id
    run: String,
}

#[derive(Debug, Args)]
pub(super) struct Replay {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    start: Start,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    find: Find,
    /// Only runs that wait for this: turn, breaker or concurrency
    #[arg(long)]
    waiting: Vec<String>,
    #[command(flatten)]
    page: view::PageArgs,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::List(list) => list.execute(client, json).await,
        Command::Groups(find) => find.groups(client, json).await,
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
        Command::Wake(name) => {
            let call = Call::post(format!("{}/wake", name.path()));
            let answer = client.send(call).await?;
            view::print(&answer, json, |run| {
                output::line(&format!("{} waits no more", view::text(&run["id"])))
            })
        }
        Command::Report(report) => report.execute(client, json).await,
        Command::Heartbeat(heartbeat) => heartbeat.execute(client, json).await,
        Command::Log(log) => log.execute(client, json).await,
        Command::Replay(Replay { name, start }) => {
            let call = Call::post(format!("{}/replay", name.path()));
            let answer = client.send(start.put(call)?).await?;
            view::print(&answer, json, started)
        }
    }
}

impl Name {
    pub(super) fn path(&self) -> String {
        format!("/v1/runs/{}", encode(&self.run))
    }
}

impl List {
    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut query = self.find.query()?;
        query.extend(self.waiting.iter().map(|it| ("waiting", it.clone())));
        let show = async |items: &[Value], first: bool| {
            run_view::runs(items, &Jobs::of(client, items).await?, first)
        };
        view::list_with(client, "/v1/runs", query, &self.page, json, show).await
    }
}

/// The jobs of some runs, by their ids; those that are still there.
#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<String, Value>);

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
    pub(super) fn job(&self, run: &Value) -> Option<&Value> {
        self.0.get(run["job"].as_str()?)
    }

    /// The key of a run's job; its id if it has none.
    pub(super) fn key(&self, run: &Value) -> String {
        let key = self
            .job(run)
            .map(|job| &job["key"])
            .filter(|key| key.is_string());
        view::text(key.unwrap_or(&run["job"]))
    }
}
