//! `punctual key …`: keys that open the API.

use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use serde_json::{Map, Value};

use super::output;
use super::view::{self, cut, moment, text};
use crate::client::{Call, Client, encode, with_query};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
Roles, each of which may do what those before it may:
  reader    sees everything
  operator  pauses, resumes, runs, cancels and replays
  admin     creates, changes and deletes jobs and calendars, makes keys
  root      makes tenants, and keys for any of them; sees the nodes and the metrics

And apart from those:
  worker    gets work from the queues that --queue names, and sees nothing else

The key is printed, and never shown again. Nobody makes a key that may do more than its own.

Examples:
  punctual key create --role operator --label \"on call\" --expires-in 90d
  punctual key create --role worker --queue mail --queue mail.bulk
  PUNCTUAL_KEY=$(punctual key create --role reader) punctual job list";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a key, and print it this once
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// List keys, newest first
    List(List),
    /// Revoke a key: it opens nothing any more
    Revoke(Id),
}

#[derive(Debug, Args)]
struct OfTenant {
    /// Whose key it is, by the tenant's name; for root only [default: that of your own key]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl OfTenant {
    fn query(self) -> Vec<(&'static str, String)> {
        self.tenant
            .map(|name| ("tenant", name))
            .into_iter()
            .collect()
    }
}

#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    of: OfTenant,
    /// What it allows: reader, operator, admin, root or worker
    #[arg(long)]
    role: String,
    /// A queue that a worker gets its work from; may be repeated
    #[arg(long = "queue", value_name = "NAME")]
    queues: Vec<String>,
    /// What it is for
    #[arg(long)]
    label: Option<String>,
    /// When it expires, such as 2027-01-01T00:00:00Z
    #[arg(long, value_name = "MOMENT", conflicts_with = "expires_in")]
    expires_at: Option<String>,
    /// In how long it expires, such as 90d
    #[arg(long, value_name = "SPAN")]
    expires_in: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    of: OfTenant,
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The key's id, such as key_0192…
    id: String,
    #[command(flatten)]
    of: OfTenant,
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(create) => {
            let call = Call::post("/v1/keys").json(create.to_json());
            let answer = client.send(call).await?;
            view::print(&answer, json, created)
        }
        Command::List(List { of, page }) => {
            view::list(client, "/v1/keys", of.query(), &page, json, keys).await
        }
        Command::Revoke(Id { id, of }) => {
            let path = format!("/v1/keys/{}", encode(&id));
            let path = with_query(&path, &of.query());
            let answer = client.send(Call::new(Method::DELETE, path)).await?;
            view::print(&answer, json, |key| {
                output::line(&format!("revoked {}", text(&key["id"])))
            })
        }
    }
}

impl Create {
    fn to_json(&self) -> String {
        let mut body = Map::new();
        body.insert("role".to_owned(), self.role.as_str().into());
        if !self.queues.is_empty() {
            body.insert("queues".to_owned(), self.queues.clone().into());
        }
        let texts = [
            ("tenant", &self.of.tenant),
            ("label", &self.label),
            ("expires_at", &self.expires_at),
            ("expires_in", &self.expires_in),
        ];
        for (name, said) in texts {
            if let Some(said) = said {
                body.insert(name.to_owned(), said.as_str().into());
            }
        }
        Value::from(body).to_string()
    }
}

/// Only the key goes to standard output, so that a script can take it.
fn created(key: &Value) -> Result<(), Failure> {
    output::note(&format!(
        "{}, with the role {}; this is the only time that it is shown:",
        text(&key["id"]),
        text(&key["role"])
    ));
    output::line(&text(&key["key"]))
}

fn queues(key: &Value) -> String {
    let names = key["queues"].as_array().into_iter().flatten();
    let names: Vec<String> = names.map(text).collect();
    names.join(" ")
}

fn keys(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|key| {
        vec![
            Cell::new(text(&key["id"])),
            Cell::new(text(&key["tenant"])),
            Cell::new(text(&key["role"])),
            Cell::new(cut(&queues(key))),
            Cell::new(moment(&key["last_used_at"], false)),
            Cell::new(moment(&key["expires_at"], false)),
            Cell::new(moment(&key["revoked_at"], false)),
            Cell::new(cut(&text(&key["label"]))),
        ]
    });
    let head = [
        "ID",
        "TENANT",
        "ROLE",
        "QUEUES",
        "LAST USED",
        "EXPIRES",
        "REVOKED",
        "LABEL",
    ];
    view::rows_of(&head, rows.collect(), first, "keys")
}
