//! `punctual user …`: people who log in to the console; and `punctual console`, a link that logs in once.

use std::io::{self, BufRead, IsTerminal};

use clap::{Args, Subcommand};
use comfy_table::Cell;
use hyper::Method;
use serde_json::{Map, Value};

use super::login::without_echo;
use super::output;
use super::view::{self, moment, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const CREATE_HELP: &str = "\
The password comes from the terminal, where it is not shown, or from the first line of standard input. It
is never an argument: everyone on a machine can see those. It has 12 characters or more.

Roles are those of keys: reader, operator, admin, root. --role gives one in the tenant of your own key;
--in TENANT=ROLE in any tenant, several times, which is for root only.

Examples:
  punctual user create ada --role operator
  punctual user create bob --in default=reader --in team-search=admin < password.txt";

pub(super) const CONSOLE_HELP: &str = "\
Prints the address of the console with a link that logs in once, within a minute, as the holder of your
key. Whoever opens it first is logged in, so hand it to nobody.

Examples:
  punctual console
  xdg-open \"$(punctual console)\"";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a user
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// Give a user another password: everyone who is logged in with the old one is logged out
    Passwd(Name),
    /// Change what a user may do, and where
    Roles(Roles),
    /// List users by name
    List(List),
    /// Delete a user, and log it out everywhere
    Delete(Name),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The user's name
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct RoleArgs {
    /// What it may do in the tenant of your own key: reader, operator, admin or root
    #[arg(long, required_unless_present = "roles", conflicts_with = "roles")]
    role: Option<String>,
    /// What it may do in a tenant; may be given several times
    #[arg(long = "in", value_name = "TENANT=ROLE")]
    roles: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    roles: RoleArgs,
}

#[derive(Debug, Args)]
pub(super) struct Roles {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    roles: RoleArgs,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

impl Name {
    fn path(&self) -> String {
        format!("/v1/users/{}", encode(&self.name))
    }
}

impl RoleArgs {
    fn add_to(&self, body: &mut Map<String, Value>) -> Result<(), Failure> {
        if let Some(role) = &self.role {
            body.insert("role".to_owned(), role.as_str().into());
            return Ok(());
        }
        let mut roles = Map::new();
        for word in &self.roles {
            let (tenant, role) = word.split_once('=').ok_or_else(|| {
                Failure::usage(format!(
                    "--in {word} cannot be read: write --in TENANT=ROLE"
                ))
            })?;
            roles.insert(tenant.to_owned(), role.into());
        }
        body.insert("roles".to_owned(), roles.into());
        Ok(())
    }
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::Create(Create { name, roles }) => {
            let mut body = Map::new();
            roles.add_to(&mut body)?;
            body.insert("name".to_owned(), name.name.as_str().into());
            body.insert("password".to_owned(), read_password()?.into());
            let call = Call::post("/v1/users").json(Value::from(body).to_string());
            said(client, call, json, "made").await
        }
        Command::Passwd(name) => {
            let mut body = Map::new();
            body.insert("password".to_owned(), read_password()?.into());
            let call = Call::new(Method::PATCH, name.path()).json(Value::from(body).to_string());
            said(client, call, json, "changed").await
        }
        Command::Roles(Roles { name, roles }) => {
            let mut body = Map::new();
            roles.add_to(&mut body)?;
            let call = Call::new(Method::PATCH, name.path()).json(Value::from(body).to_string());
            said(client, call, json, "changed").await
        }
        Command::List(List { page }) => {
            view::list(client, "/v1/users", Vec::new(), &page, json, users).await
        }
        Command::Delete(name) => {
            let call = Call::new(Method::DELETE, name.path());
            said(client, call, json, "deleted").await
        }
    }
}

async fn said(client: &Client, call: Call, json: bool, verb: &str) -> Result<(), Failure> {
    let answer = client.send(call).await?;
    view::print(&answer, json, |user| {
        output::line(&format!("{verb} {}", text(&user["name"])))
    })
}

fn users(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|user| {
        let roles = user["roles"].as_object().into_iter().flatten();
        let roles: Vec<String> = roles
            .map(|(tenant, role)| format!("{tenant}={}", text(role)))
            .collect();
        vec![
            Cell::new(text(&user["name"])),
            Cell::new(roles.join(", ")),
            Cell::new(moment(&user["created_at"], false)),
            Cell::new(moment(&user["updated_at"], false)),
        ]
    });
    let head = ["NAME", "ROLES", "MADE", "CHANGED"];
    view::rows_of(&head, rows.collect(), first, "users")
}

/// `punctual console`.
pub(super) async fn console(client: &Client, json: bool) -> Result<(), Failure> {
    let answer = client.send(Call::post("/v1/console/links")).await?;
    let mut link = view::parse(&answer)?;
    let url = client.url(&text(&link["path"]));
    if json {
        link["url"] = url.into();
        return output::line(&link.to_string());
    }
    if !link["expires_at"].is_null() {
        output::note("open this within a minute; it logs in once:");
    }
    output::line(&url)
}

fn read_password() -> Result<String, Failure> {
    let refused =
        |error: io::Error| Failure::usage(format!("the password cannot be read: {error}"));
    let stdin = io::stdin();
    let mut first = String::new();
    if stdin.is_terminal() {
        output::prompt("Password: ");
        let read = without_echo(|| stdin.lock().read_line(&mut first));
        output::note("");
        read.map_err(refused)?;
        let mut again = String::new();
        output::prompt("Again: ");
        let read = without_echo(|| stdin.lock().read_line(&mut again));
        output::note("");
        read.map_err(refused)?;
        if first != again {
            return Err(Failure::usage("the two are not the same: nothing was sent"));
        }
    } else {
        stdin.lock().read_line(&mut first).map_err(refused)?;
    }
    let password = first.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        let text = "no password was given: write it at the prompt or to standard input";
        return Err(Failure::usage(text));
    }
    Ok(password.to_owned())
}
