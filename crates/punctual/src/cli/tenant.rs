//! `punctual tenant …`: who owns jobs.

use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use serde_json::{Value, json};

use super::output;
use super::view::{self, cut, moment, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
A tenant sees its own jobs, runs, calendars and keys, and nothing of the others'. It is made without a
key: the root key makes the first one.

Examples:
  punctual tenant create team-search --note \"owned by Ann\"
  punctual key create --tenant team-search --role admin";

const DELETE_HELP: &str = "\
A tenant that has jobs, calendars or valid keys is not deleted. Delete and revoke those first.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a tenant
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// List tenants by name
    List(List),
    /// Show a tenant
    Show(Name),
    /// Say what a tenant is for
    Edit(Edit),
    /// Delete a tenant that has nothing
    #[command(after_help = DELETE_HELP)]
    Delete(Name),
}

#[derive(Debug, Args)]
pub struct Name {
    /// The tenant's name
    name: String,
}

#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    name: Name,
    /// What it is for
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Args)]
pub struct Edit {
    #[command(flatten)]
    name: Name,
    /// What it is for; "" takes it away
    #[arg(long)]
    note: String,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/tenants/{}", encode(&self.name))
    }
}

pub async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(Create { name, note }) => {
            let mut body = json!({"name": name.name});
            if let Some(note) = note {
                body["note"] = note.into();
            }
            let call = Call::post("/v1/tenants").json(body.to_string());
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
        Command::Edit(Edit { name, note }) => {
            let note = Some(note).filter(|note| !note.is_empty());
            let body = json!({ "note": note }).to_string();
            let call = Call::new(Method::PATCH, name.path()).json(body);
            view::print(&client.send(call).await?, json, |tenant| {
                said("changed", tenant)
            })
        }
        Command::Delete(name) => {
            let call = Call::new(Method::DELETE, name.path());
            view::print(&client.send(call).await?, json, |tenant| {
                said("deleted", tenant)
            })
        }
    }
}

fn said(done: &str, tenant: &Value) -> Result<(), Failure> {
    output::line(&format!("{done} {}", text(&tenant["name"])))
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
