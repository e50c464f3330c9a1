//! `punctual replay …` and `job backfill`: many runs at a pace.

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use engine::{Clock, SystemClock};
use serde_json::{Map, Value};

use super::find::Find;
use super::job::{Name as JobName, dry};
use super::output;
use super::view::{self, moment, state, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

/// How often progress is looked at.
const CHECK_EVERY: Duration = Duration::from_millis(500);

const CREATE_HELP: &str = "\
Dead runs are meant unless --state says otherwise; `punctual run list` and `run groups` take the same filters, and show
what they name. The nodes start the new runs in the background, the newest first, at --rate runs a second. A run of a
job that lets none overlap waits for those before it.

Examples:
  punctual replay create --since 1h --error \"cannot be reached\"
  punctual replay create --job nightly-report --from 2026-11-16T00:00:00Z --rate 50 --wait
  punctual replay create --label team=ops --payload '{\"again\": true}' --limit 100";

pub(super) const BACKFILL_HELP: &str = "\
Slots that were skipped or missed run under their own names; those that ran are replayed. Slots run one after another,
oldest first, unless the job lets its runs overlap.

Examples:
  punctual job backfill nightly-report --from 2026-11-01T00:00:00Z --to 2026-11-15T00:00:00Z --dry-run
  punctual job backfill nightly-report --from 2026-11-01T00:00:00Z --rate 2 --wait";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Replay every run that the filters name
    #[command(after_help = CREATE_HELP)]
    Create(Box<Create>),
    /// List replays and backfills, the newest first
    List(List),
    /// Show how far a replay or a backfill is
    Show(Show),
    /// Start nothing more; runs that were started go on
    Cancel(Name),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The replay's id
    replay: String,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    name: Name,
    /// Stay until it has ended
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

/// How fast, how many, and whether to stay.
#[derive(Debug, Args)]
pub(super) struct Pace {
    /// Runs a second [default of the server: 10]
    #[arg(long, value_name = "COUNT")]
    rate: Option<u32>,
    /// Start so many runs at most
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Stay until it has ended
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    find: Find,
    /// A payload for the new runs, as JSON, instead of those that the old ones had
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    #[command(flatten)]
    pace: Pace,
}

#[derive(Debug, Args)]
pub(super) struct Backfill {
    #[command(flatten)]
    name: JobName,
    /// Slots from this moment on
    #[arg(long, value_name = "MOMENT")]
    from: String,
    /// Slots before this moment [default of the server: now]
    #[arg(long, value_name = "MOMENT")]
    to: Option<String>,
    #[command(flatten)]
    pace: Pace,
    /// Say how many slots there are, and start nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.execute(client, json).await,
        Command::List(List { page }) => {
            view::list(client, "/v1/replays", Vec::new(), &page, json, replays).await
        }
        Command::Show(Show { name, wait }) => {
            let answer = client.send(Call::get(name.path())).await?;
            if wait {
                return wait_for(client, view::parse(&answer)?, json).await;
            }
            view::print(&answer, json, view::fields)
        }
        Command::Cancel(name) => {
            let path = format!("{}/cancel", name.path());
            let answer = client.send(Call::post(path)).await?;
            view::print(&answer, json, |replay| output::line(&line(replay)))
        }
    }
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/replays/{}", encode(&self.replay))
    }
}

impl Pace {
    fn put(&self, body: &mut Map<String, Value>) {
        if let Some(rate) = self.rate {
            body.insert("rate".to_owned(), rate.into());
        }
        if let Some(limit) = self.limit {
            body.insert("limit".to_owned(), limit.into());
        }
    }
}

impl Create {
    /// The filter as a body has it.
    fn filter(&self) -> Result<Value, Failure> {
        let find = &self.find;
        let mut filter = Map::new();
        let job = find.job.clone().map(|job| JobName::new(job).named());
        let texts = [
            ("job", job),
            ("from", find.from()?),
            ("to", find.to.clone()),
            ("error", find.error.clone()),
            ("target", find.target.clone()),
        ];
        for (name, value) in texts {
            filter.extend(value.map(|value| (name.to_owned(), value.into())));
        }
        for (name, words) in [("state", &find.state), ("reason", &find.reason)] {
            let words: Vec<&str> = words.iter().flat_map(|list| list.split(',')).collect();
            if !words.is_empty() {
                filter.insert(name.to_owned(), words.into());
            }
        }
        let mut labels = Map::new();
        for label in &find.label {
            let (name, value) = label
                .split_once('=')
                .ok_or_else(|| Failure::usage("write --label NAME=VALUE"))?;
            labels.insert(name.to_owned(), value.into());
        }
        if !labels.is_empty() {
            filter.insert("labels".to_owned(), labels.into());
        }
        Ok(filter.into())
    }

    async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut body = Map::new();
        body.insert("filter".to_owned(), self.filter()?);
        self.pace.put(&mut body);
        let mut text = Value::from(body).to_string();
        if let Some(payload) = &self.payload {
            let value: &serde_json::value::RawValue = serde_json::from_str(payload)
                .map_err(|error| Failure::usage(format!("the payload is not JSON: {error}")))?;
            // As it was written, byte for byte.
            text.insert_str(1, &format!("\"payload\":{value},"));
        }
        let answer = client.send(Call::post("/v1/replays").json(text)).await?;
        begun(client, &answer, self.pace.wait, json, |answer| answer).await
    }
}

impl Backfill {
    pub(super) async fn execute(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut body = Map::new();
        body.insert("from".to_owned(), self.from.as_str().into());
        if let Some(to) = &self.to {
            body.insert("to".to_owned(), to.as_str().into());
        }
        self.pace.put(&mut body);
        let path = dry(format!("{}/backfill", self.name.path()), self.dry_run);
        let call = Call::post(path).json(Value::from(body).to_string());
        let answer = client.send(call).await?;
        if self.dry_run {
            return view::print(&answer, json, |answer| {
                let said = |name: &str| text(&answer[name]);
                let (slots, from, to) = (said("slots"), said("from"), said("to"));
                output::line(&format!(
                    "{slots} slots from {from} to {to}; nothing was started"
                ))
            });
        }
        begun(
            client,
            &answer,
            self.pace.wait,
            json,
            |answer| &answer["replay"],
        )
        .await
    }
}

/// Says what was begun, or stays until it has ended.
async fn begun(
    client: &Client,
    answer: &[u8],
    wait: bool,
    json: bool,
    replay: impl Fn(&Value) -> &Value,
) -> Result<(), Failure> {
    if wait {
        let answer = view::parse(answer)?;
        return wait_for(client, replay(&answer).clone(), json).await;
    }
    view::print(answer, json, |answer| {
        let id = text(&replay(answer)["id"]);
        output::line(&format!("begun {id}"))?;
        output::note(&format!("punctual replay show {id} --wait"));
        Ok(())
    })
}

/// Follows a replay to its end; on a terminal, with its progress.
async fn wait_for(client: &Client, mut replay: Value, json: bool) -> Result<(), Failure> {
    let path = Name {
        replay: text(&replay["id"]),
    }
    .path();
    let shows = !json && std::io::stderr().is_terminal();
    let mut shown = String::new();
    while replay["state"] == "running" {
        let now = line(&replay);
        if shows && now != shown {
            output::note(&now);
            shown = now;
        }
        Clock::sleep(&SystemClock, CHECK_EVERY).await;
        replay = view::parse(&client.send(Call::get(path.clone())).await?)?;
    }
    if json {
        output::json(replay.to_string().as_bytes())?;
    } else {
        output::line(&line(&replay))?;
    }
    if replay["state"] == "failed" {
        return Err(Failure::refused(text(&replay["note"])));
    }
    Ok(())
}

/// How far it is, in one line.
fn line(replay: &Value) -> String {
    let said = |name: &str| text(&replay[name]);
    let mut line = format!(
        "{} is {}: {} started, {} skipped, {} looked at",
        said("id"),
        said("state"),
        said("started"),
        said("skipped"),
        said("scanned")
    );
    if replay["note"].is_string() {
        line.push_str(&format!("; {}", said("note")));
    }
    line
}

fn replays(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|replay| {
        vec![
            Cell::new(text(&replay["id"])),
            Cell::new(text(&replay["kind"])),
            state(&replay["state"]),
            Cell::new(text(&replay["started"])),
            Cell::new(text(&replay["skipped"])),
            Cell::new(text(&replay["scanned"])),
            Cell::new(moment(&replay["created_at"], false)),
            Cell::new(text(&replay["actor"])),
        ]
    });
    let head = [
        "ID", "KIND", "STATE", "STARTED", "SKIPPED", "SCANNED", "CREATED", "ACTOR",
    ];
    view::rows_of(&head, rows.collect(), first, "replays")
}
