//! `punctual run …`: what came of slots.

use clap::{Args, Subcommand};

use super::job::Name as JobName;
use super::view::run as run_view;
use super::{output, view};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List runs, the newest first
    List(List),
    /// Show a run and its attempts
    Show(Name),
    /// End a run that has not ended
    Cancel(Name),
    /// Make a new run from one that is dead
    Replay(Name),
}

#[derive(Debug, Args)]
pub struct Name {
    /// The run's id
    run: String,
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
            view::print(&answer, json, run_view::run)
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
        Command::Replay(name) => {
            let answer = client
                .send(Call::post(format!("{}/replay", name.path())))
                .await?;
            view::print(&answer, json, |run| {
                output::line(&format!(
                    "started {} from {}",
                    view::text(&run["id"]),
                    name.run
                ))
            })
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
        let query: Vec<_> = self
            .state
            .iter()
            .map(|state| ("state", state.clone()))
            .collect();
        let path = match &self.job {
            Some(job) => format!(
                "{}/runs",
                JobName::new(job.clone()).path_by_id(client).await?
            ),
            None => "/v1/runs".to_owned(),
        };
        view::list(client, &path, query, &self.page, json, run_view::runs).await
    }
}
