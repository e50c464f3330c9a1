//! `punctual tenant …`: who owns jobs.

use std::fmt;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use serde_json::{Map, Value};

use super::secret::read_value;
use super::view::{self, cut, moment, text};
use super::{output, when};
use crate::client::{Call, Client, encode, with_query};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
A tenant sees its own jobs, runs, calendars and keys, and nothing of the others'. It is made without a
key: the root key makes the first one.

Examples:
  punctual tenant create team-search --note \"owned by Ann\" --jobs-max 50000
  punctual key create --tenant team-search --role admin";

const DELETE_HELP: &str = "\
A tenant that has jobs, calendars or valid keys is not deleted, unless --with-everything is said: then its keys are refused at
once, and its jobs, runs, calendars and keys go in the background. `punctual tenant show` says how many jobs are left, until
there is no such tenant any more, two minutes later at the earliest: so that a request that is under way meanwhile leaves
nothing behind. Only then is its name free. It cannot be undone.

Examples:
  punctual tenant delete team-search
  punctual tenant delete team-search --with-everything";

const EDIT_HELP: &str = "\
What is not said stays as it is; an empty text takes a note or a proxy away, and sets a quota back to its default. A tenant that has
more than a new quota keeps it, and gets no more. `punctual tenant show` shows how much it has.

Examples:
  punctual tenant edit team-search --jobs-max 50000 --payload-bytes-max 1000000000
  punctual tenant edit team-search --runs-day-max 100000
  punctual tenant edit team-search --jobs-max \"\"
  punctual tenant edit team-search --proxy - < proxy-url.txt";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a tenant
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// List tenants by name
    List(List),
    /// Show a tenant, and how much it has
    Show(Name),
    /// Say what a tenant is for, how much it may have, and what its callbacks go through
    #[command(after_help = EDIT_HELP)]
    Edit(Edit),
    /// Delete a tenant that has nothing, or with everything
    #[command(after_help = DELETE_HELP)]
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The tenant's name
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    name: Name,
    /// What it is for
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    proxy: ProxyField,
    #[command(flatten)]
    quotas: QuotaFields,
}

#[derive(Debug, Args)]
pub(super) struct Edit {
    #[command(flatten)]
    name: Name,
    /// What it is for; "" takes it away
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    proxy: ProxyField,
    #[command(flatten)]
    quotas: QuotaFields,
}

/// What a tenant's callbacks go through.
#[derive(Args)]
struct ProxyField {
    /// The HTTP proxy that its callbacks go through, such as http://user:password@proxy.example:3128; - reads it from the
    /// terminal or from standard input, "" takes it away
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
}

impl ProxyField {
    fn read(self) -> Result<Option<String>, Failure> {
        match self.proxy.as_deref() {
            Some("-") => read_value().map(Some),
            Some(_) | None => Ok(self.proxy),
        }
    }
}

/// It may hold a password.
impl fmt::Debug for ProxyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyField").finish_non_exhaustive()
    }
}

/// How much a tenant may have.
#[derive(Debug, Args)]
struct QuotaFields {
    /// How many jobs it may have, deleted ones not counted; "" is the default, 10,000,000
    #[arg(long, value_name = "COUNT", help_heading = "Quotas")]
    jobs_max: Option<String>,
    /// How many bytes their payloads may have in all; "" is the default, 64 GiB
    #[arg(long, value_name = "BYTES", help_heading = "Quotas")]
    payload_bytes_max: Option<String>,
    /// For how many days it sees runs that have ended; "" is the default, as long as the installation keeps them
    #[arg(long, value_name = "DAYS", help_heading = "Quotas")]
    history_days_max: Option<String>,
    /// How many runs it may have on one day of UTC, beyond which slots are skipped; "" is the default, unlimited
    #[arg(long, value_name = "COUNT", help_heading = "Quotas")]
    runs_day_max: Option<String>,
}

impl QuotaFields {
    /// All that is said of a tenant.
    fn to_json(&self, note: Option<&String>, proxy: Option<&String>) -> Map<String, Value> {
        let mut body = Map::new();
        for (name, said) in [("note", note), ("proxy", proxy)] {
            if let Some(said) = said {
                body.insert(name.to_owned(), when::text(said));
            }
        }
        let mut quotas = Map::new();
        for (name, max) in [
            ("jobs_max", &self.jobs_max),
            ("payload_bytes_max", &self.payload_bytes_max),
            ("history_days_max", &self.history_days_max),
            ("runs_day_max", &self.runs_day_max),
        ] {
            if let Some(max) = max {
                quotas.insert(name.to_owned(), when::number(max));
            }
        }
        if !quotas.is_empty() {
            body.insert("quotas".to_owned(), quotas.into());
        }
        body
    }
}

#[derive(Debug, Args)]
pub(super) struct Delete {
    #[command(flatten)]
    name: Name,
    /// Delete its jobs, runs, calendars and keys as well
    #[arg(long)]
    with_everything: bool,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/tenants/{}", encode(&self.name))
    }
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(Create {
            name,
            note,
            proxy,
            quotas,
        }) => {
            let mut body = quotas.to_json(note.as_ref(), proxy.read()?.as_ref());
            body.insert("name".to_owned(), name.name.into());
            let call = Call::post("/v1/tenants").json(Value::from(body).to_string());
            view::print(&client.send(call).await?, json, |tenant| {
                said("created", tenant)
            })
        }
        Command::List(List { page }) => {
            view::list(client, "/v1/tenants", Vec::new(), &page, json, tenants).await
        }
        Command::Show(name) => {
            let answer = client.send(Call::get(name.path())).await?;
            view::print(&answer, json, view::fields)
        }
        Command::Edit(Edit {
            name,
            note,
            proxy,
            quotas,
        }) => {
            let body = quotas.to_json(note.as_ref(), proxy.read()?.as_ref());
            if body.is_empty() {
                let none = "nothing to change: see `punctual tenant edit --help`";
                return Err(Failure::usage(none));
            }
            let body = Value::from(body).to_string();
            let call = Call::new(Method::PATCH, name.path()).json(body);
            view::print(&client.send(call).await?, json, |tenant| {
                said("changed", tenant)
            })
        }
        Command::Delete(Delete {
            name,
            with_everything,
        }) => {
            let mut path = name.path();
            if with_everything {
                path = with_query(&path, &[("with_everything", "true".to_owned())]);
            }
            let call = Call::new(Method::DELETE, path);
            view::print(&client.send(call).await?, json, deleted)
        }
    }
}

fn said(done: &str, tenant: &Value) -> Result<(), Failure> {
    output::line(&format!("{done} {}", text(&tenant["name"])))
}

fn deleted(tenant: &Value) -> Result<(), Failure> {
    let (name, jobs) = (text(&tenant["name"]), text(&tenant["used"]["jobs"]));
    output::line(&format!("deleting {name}: {jobs} jobs are left"))
}

fn tenants(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|tenant| {
        vec![
            Cell::new(text(&tenant["name"])),
            Cell::new(moment(&tenant["created_at"], false)),
            Cell::new(cut(&text(&tenant["note"]))),
        ]
    });
    view::rows_of(
        &["NAME", "CREATED", "NOTE"],
        rows.collect(),
        first,
        "tenants",
    )
}
