//! `punctual signing …`: what callbacks are signed with.

use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use serde_json::{Value, json};

use super::output;
use super::secret::read_value;
use super::view::{self, moment, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
Every callback of the tenant is signed from then on, as Standard Webhooks says; `webhook-signature` has one
signature for each signing secret. The secret is printed once: give it to those who run your receivers. To
change it, create a second one, give it to them, and then delete the first.

Examples:
  punctual signing create
  punctual signing create --stdin < secret.txt
  punctual signing list
  punctual signing delete sign_1_1794809413697";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a signing secret, and print it, once
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// List signing secrets, without what they are
    List,
    /// Delete a signing secret: nothing is signed with it any more
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Take one that receivers know already, `whsec_…`, from the terminal or from standard input
    #[arg(long)]
    stdin: bool,
}

#[derive(Debug, Args)]
pub(super) struct Delete {
    /// Its id, as `signing list` shows it
    id: String,
}

const PATH: &str = "/v1/signing-secrets";

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(Create { stdin }) => {
            let mut body = json!({});
            if stdin {
                body["secret"] = read_value()?.into();
            }
            let call = Call::new(Method::POST, PATH.to_owned()).json(body.to_string());
            view::print(&client.send(call).await?, json, |made| {
                output::note(&format!(
                    "{} signs every callback of the tenant. This is shown once:",
                    text(&made["id"])
                ));
                output::line(&text(&made["secret"]))
            })
        }
        Command::List => {
            let answer = client.send(Call::get(PATH.to_owned())).await?;
            view::print(&answer, json, |list| rows(&list["items"]))
        }
        Command::Delete(Delete { id }) => {
            let call = Call::new(Method::DELETE, format!("{PATH}/{}", encode(&id)));
            view::print(&client.send(call).await?, json, |secret| {
                output::line(&format!("deleted {}", text(&secret["id"])))
            })
        }
    }
}

fn rows(items: &Value) -> Result<(), Failure> {
    let items = items.as_array().into_iter().flatten();
    let rows = items.map(|secret| {
        vec![
            Cell::new(text(&secret["id"])),
            Cell::new(moment(&secret["created_at"], false)),
            Cell::new(text(&secret["master_key"])),
        ]
    });
    let names = ["ID", "CREATED", "MASTER KEY"];
    view::rows_of(&names, rows.collect(), true, "signing secrets")
}
