//! `punctual alert …`: who is to hear of what.

use clap::{ArgAction, Args, Subcommand};
use comfy_table::Cell;
use engine::{Clock, SystemClock};
use hyper::Method;
use serde_json::{Map, Value, json};

use super::output;
use super::run::Jobs;
use super::view::run as run_view;
use super::view::{self, cut, items, moment, text};
use crate::client::{Call, Client, encode};
use crate::failure::Failure;

const PUT_HELP: &str = "\
An alert is written as a whole: what is not said is as it is by default, but for the address, which
stays. It is about every job unless --job, --owner or --label says otherwise.

Examples:
  punctual alert create ops --on dead --url https://ops.example.com/alerts --repeat 4h
  punctual alert create billing --label team=billing --on failed --slack --url \"https://hooks.slack.com/{{ secret('slack') }}\"
  punctual alert create late --job key:nightly --on missed --url https://ops.example.com/alerts
  punctual alert create stuck --on skipped --count 3 --url https://ops.example.com/alerts
  punctual alert test ops";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List alerts by name
    List(List),
    /// Show an alert, and the jobs for which it fires
    Show(Name),
    /// Create or replace an alert
    #[command(after_help = PUT_HELP, visible_alias = "put")]
    Create(Create),
    /// Send nothing for a while, or again
    Mute(Mute),
    /// Send a test, as an alert would be sent
    Test(Name),
    /// List what was sent, the newest first
    Deliveries(Deliveries),
    /// Delete an alert; deliveries of it that wait are cancelled
    Delete(Name),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The alert's name
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct Deliveries {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    page: view::PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    name: Name,
    /// Only this job: its id, or `key:` and its key
    #[arg(long, group = "scope")]
    job: Option<String>,
    /// Only jobs of this owner
    #[arg(long, group = "scope")]
    owner: Option<String>,
    /// Only jobs with this label
    #[arg(long, value_name = "NAME=VALUE", group = "scope")]
    label: Option<String>,
    /// What makes it fire: failed, dead, missed or skipped
    #[arg(long)]
    on: String,
    /// Of `skipped`: how many slots in a row
    #[arg(long)]
    count: Option<u32>,
    /// Where it is sent
    #[arg(long)]
    url: Option<String>,
    /// Send it as a text that Slack reads, and what is compatible with it
    #[arg(long)]
    slack: bool,
    /// Send it again after so long while it fires
    #[arg(long, value_name = "SPAN")]
    repeat: Option<String>,
    /// Do not send that a job has recovered
    #[arg(long, action = ArgAction::SetTrue)]
    no_recovered: bool,
    /// Switch it off: nothing is noticed
    #[arg(long, action = ArgAction::SetTrue)]
    disabled: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("when").required(true))]
pub(super) struct Mute {
    #[command(flatten)]
    name: Name,
    /// For so long from now
    #[arg(long = "for", value_name = "SPAN", group = "when")]
    span: Option<String>,
    /// Until a moment
    #[arg(long, value_name = "MOMENT", group = "when")]
    until: Option<String>,
    /// Not any more
    #[arg(long, group = "when")]
    off: bool,
}

impl Name {
    fn path(&self, more: &str) -> String {
        format!("/v1/alerts/{}{more}", encode(&self.name))
    }
}

pub(super) async fn execute(command: Command, client: &Client, json: bool) -> Result<(), Failure> {
    match command {
        Command::List(List { page }) => {
            view::list(client, "/v1/alerts", Vec::new(), &page, json, alerts).await
        }
        Command::Show(name) => {
            let answer = client.send(Call::get(name.path(""))).await?;
            view::print(&answer, json, alert)
        }
        Command::Create(create) => {
            let call = Call::new(Method::PUT, create.name.path(""));
            let answer = client.send(call.json(create.to_json())).await?;
            view::print(&answer, json, |alert| {
                let (name, version) = (text(&alert["name"]), text(&alert["version"]));
                output::line(&format!("stored {name}, version {version}"))
            })
        }
        Command::Mute(mute) => {
            let call = Call::post(mute.name.path("/mute")).json(mute.to_json()?);
            let answer = client.send(call).await?;
            view::print(&answer, json, |alert| {
                let name = text(&alert["name"]);
                output::line(&if alert["muted_until"].is_null() {
                    format!("{name} is not muted")
                } else {
                    format!("{name} is muted until {}", text(&alert["muted_until"]))
                })
            })
        }
        Command::Test(name) => {
            let answer = client.send(Call::post(name.path("/test"))).await?;
            view::print(&answer, json, |run| {
                let (name, id) = (&name.name, text(&run["id"]));
                output::line(&format!(
                    "{id} delivers it: punctual alert deliveries {} shows how that went",
                    output::clean(name)
                ))
            })
        }
        Command::Deliveries(Deliveries { name, page }) => {
            let path = name.path("/deliveries");
            let shown =
                async |items: &[Value], first| run_view::runs(items, &Jobs::default(), first);
            view::list_with(client, &path, Vec::new(), &page, json, shown).await
        }
        Command::Delete(name) => {
            let call = Call::new(Method::DELETE, name.path(""));
            let answer = client.send(call).await?;
            view::print(&answer, json, |_| {
                output::line(&format!("deleted {}", output::clean(&name.name)))
            })
        }
    }
}

impl Create {
    fn to_json(&self) -> String {
        let mut body = Map::new();
        let texts = [
            ("job", &self.job),
            ("owner", &self.owner),
            ("label", &self.label),
            ("url", &self.url),
            ("repeat", &self.repeat),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                body.insert(name.to_owned(), text.as_str().into());
            }
        }
        body.insert("on".to_owned(), self.on.as_str().into());
        if let Some(count) = self.count {
            body.insert("count".to_owned(), count.into());
        }
        if self.slack {
            body.insert("channel".to_owned(), "slack".into());
        }
        if self.no_recovered {
            body.insert("recovered".to_owned(), false.into());
        }
        if self.disabled {
            body.insert("enabled".to_owned(), false.into());
        }
        Value::from(body).to_string()
    }
}

impl Mute {
    fn to_json(&self) -> Result<String, Failure> {
        let until = match (&self.span, &self.until) {
            (Some(span), _) => {
                let span = model::schedule::parse_span(span);
                let span = span.map_err(|error| Failure::usage(format!("--for: {error}")))?;
                Some(Clock::now(&SystemClock).plus(span).to_string())
            }
            (None, until) => until.clone(),
        };
        Ok(json!({ "until": until }).to_string())
    }
}

fn scope(alert: &Value) -> String {
    for name in ["job", "owner", "label"] {
        if !alert[name].is_null() {
            return format!("{name} {}", text(&alert[name]));
        }
    }
    "every job".to_owned()
}

fn condition(alert: &Value) -> String {
    if alert["count"].is_null() {
        text(&alert["on"])
    } else {
        format!("{} {} in a row", text(&alert["on"]), text(&alert["count"]))
    }
}

fn alerts(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|alert| {
        let is_on = alert["enabled"] == true;
        let muted = if !is_on {
            "off".to_owned()
        } else if alert["muted_until"].is_null() {
            String::new()
        } else {
            format!("muted until {}", moment(&alert["muted_until"], true))
        };
        vec![
            Cell::new(text(&alert["name"])),
            Cell::new(condition(alert)),
            Cell::new(cut(&scope(alert))),
            Cell::new(text(&alert["channel"])),
            Cell::new(cut(&text(&alert["url"]))),
            Cell::new(muted),
        ]
    });
    let head = ["NAME", "ON", "ABOUT", "CHANNEL", "URL", ""];
    view::rows_of(&head, rows.collect(), first, "alerts")
}

fn alert(alert: &Value) -> Result<(), Failure> {
    let mut shown = alert.clone();
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("alerts");
        fields.retain(|_, value| !value.is_null());
    }
    view::fields(&shown)?;
    let rows = items_of(alert).iter().map(|it| {
        vec![
            Cell::new(text(&it["job"])),
            Cell::new(text(&it["state"])),
            Cell::new(moment(&it["since"], true)),
            Cell::new(text(&it["causes"])),
            Cell::new(text(&it["run"])),
            Cell::new(text(&it["reason"])),
        ]
    });
    let head = ["JOB", "STATE", "SINCE", "CAUSES", "RUN", "REASON"];
    view::rows_of(&head, rows.collect(), true, "alerts that fire")
}

fn items_of(alert: &Value) -> &[Value] {
    items(&alert["alerts"])
}
