//! `punctual secret …`: values that jobs send and nobody gets back.

use std::io::{self, BufRead, IsTerminal, Read};

use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use serde_json::{Value, json};

use super::login::without_echo;
use super::output;
use super::view::{self, cut, moment, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const SET_HELP: &str = "\
The value comes from the terminal, where it is not shown, or from standard input, of which the last line's
end is left out. It is never an argument: everyone on a machine can see those. A header of a job asks for
it by {{ secret('NAME') }}.

Examples:
  punctual secret set billing-token --host api.example.com
  punctual secret set billing-token --host '*.example.com' < token.txt
  punctual secret set billing-token --host eu.example.com --keep-value
  punctual job edit nightly --header \"Authorization: Bearer {{ secret('billing-token') }}\"";

const REWRAP_HELP: &str = "\
After another master key was made the current one on every node, this seals all secrets of all tenants
under it. Nothing stands still meanwhile. When none is left the old key can go.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a secret, or change its value or its hosts
    #[command(after_help = SET_HELP)]
    Set(Set),
    /// List secrets by name, without their values
    List(List),
    /// Show a secret, without its value
    Show(Name),
    /// Delete a secret: attempts that need it fail from then on
    Delete(Name),
    /// Seal all secrets under the current master key
    #[command(after_help = REWRAP_HELP)]
    Rewrap,
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The secret's name
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    #[command(flatten)]
    name: Name,
    /// A host that it may be sent to, such as example.com or *.example.com; may be given several times
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// What it is for; "" takes it away
    #[arg(long)]
    note: Option<String>,
    /// Change the note or leave out hosts, and keep the value; another host needs the value again
    #[arg(long)]
    keep_value: bool,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/secrets/{}", encode(&self.name))
    }
}

impl Set {
    fn body(&self) -> Result<Value, Failure> {
        let mut body = json!({});
        if !self.keep_value {
            body["value"] = read_value()?.into();
        }
        if !self.hosts.is_empty() {
            body["hosts"] = self.hosts.clone().into();
        }
        if let Some(note) = &self.note {
            body["note"] = Some(note.as_str()).filter(|note| !note.is_empty()).into();
        }
        Ok(body)
    }
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Set(set) => {
            let call = Call::new(Method::PUT, set.name.path()).json(set.body()?.to_string());
            view::print(&client.send(call).await?, json, |secret| {
                let (name, version) = (text(&secret["name"]), text(&secret["version"]));
                output::line(&format!("{name} is at version {version}"))
            })
        }
        Command::List(List { page }) => {
            view::list(client, "/v1/secrets", Vec::new(), &page, json, secrets).await
        }
        Command::Show(name) => {
            let answer = client.send(Call::get(name.path())).await?;
            view::print(&answer, json, view::fields)
        }
        Command::Delete(name) => {
            let call = Call::new(Method::DELETE, name.path());
            view::print(&client.send(call).await?, json, |secret| {
                output::line(&format!("deleted {}", text(&secret["name"])))
            })
        }
        Command::Rewrap => rewrap(client, json).await,
    }
}

/// Step by step, until none is left.
async fn rewrap(client: &Client, json: bool) -> Result<(), Failure> {
    let (mut rewrapped, mut closed) = (0, 0);
    let mut cursor: Option<String> = None;
    loop {
        let path = match &cursor {
            Some(cursor) => format!("/v1/secrets/rewrap?cursor={}", encode(cursor)),
            None => "/v1/secrets/rewrap".to_owned(),
        };
        let mut step = view::parse(&client.send(Call::post(path)).await?)?;
        rewrapped += step["rewrapped"].as_u64().unwrap_or_default();
        closed += step["closed"].as_u64().unwrap_or_default();
        cursor = step["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_some() {
            output::note(&format!("{rewrapped} secrets so far"));
            continue;
        }
        (step["rewrapped"], step["closed"]) = (rewrapped.into(), closed.into());
        let key = text(&step["master_key"]);
        if json {
            output::line(&step.to_string())?;
        } else {
            output::line(&format!(
                "{rewrapped} secrets are under the master key {key} now"
            ))?;
        }
        if closed > 0 {
            return Err(Failure::refused(format!(
                "{closed} secrets stay as they were: the server does not have their master key, name it with --master-key-old-file"
            )));
        }
        return Ok(());
    }
}

fn secrets(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|secret| {
        let hosts = secret["hosts"].as_array().into_iter().flatten();
        let hosts: Vec<String> = hosts.map(text).collect();
        vec![
            Cell::new(text(&secret["name"])),
            Cell::new(text(&secret["version"])),
            Cell::new(cut(&hosts.join(","))),
            Cell::new(moment(&secret["updated_at"], false)),
            Cell::new(cut(&text(&secret["note"]))),
        ]
    });
    view::rows_of(
        &["NAME", "VERSION", "HOSTS", "CHANGED", "NOTE"],
        rows.collect(),
        first,
        "secrets",
    )
}

pub(super) fn read_value() -> Result<String, Failure> {
    let refused = |error: io::Error| Failure::usage(format!("the value cannot be read: {error}"));
    let stdin = io::stdin();
    let mut value = String::new();
    if stdin.is_terminal() {
        output::prompt("Value: ");
        let read = without_echo(|| stdin.lock().read_line(&mut value));
        output::note("");
        read.map_err(refused)?;
    } else {
        let limit = model::limits::SECRET_MAX as u64 + 3;
        stdin
            .lock()
            .take(limit)
            .read_to_string(&mut value)
            .map_err(refused)?;
    }
    // What follows the value is the line's end of whoever wrote it.
    let text = value.strip_suffix('\n').unwrap_or(&value);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(Failure::usage(
            "no value was given: write it at the prompt or to standard input, or say --keep-value to change a secret's hosts alone",
        ));
    }
    Ok(text.to_owned())
}
