//! `punctual run report|heartbeat`: for scripts that take an attempt over.

use std::io::{self, BufRead};

use clap::Args;
use hyper::header::HeaderName;
use serde_json::{Map, Value};

use super::run::Name;
use super::{output, view};
use crate::client::{Call, Client};
use crate::failure::Failure;

const TOKEN: HeaderName = HeaderName::from_static("punctual-token");
const VARIABLE: &str = "PUNCTUAL_TOKEN";

pub(super) const REPORT_HELP: &str = "\
The token comes from PUNCTUAL_TOKEN, or from the first line of standard input; it is no flag, because others see those.

Examples:
  PUNCTUAL_TOKEN=\"$TOKEN\" punctual run report run_01a1… succeeded --output \"42 rows\"
  punctual run report run_01a1… failed --error \"no such bucket\" --retry never < token.txt";

#[derive(Debug, Args)]
pub(super) struct Report {
    #[command(flatten)]
    name: Name,
    /// How it went: succeeded or failed
    outcome: String,
    /// Why it failed, in one line
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// What it brought
    #[arg(long, value_name = "TEXT")]
    output: Option<String>,
    /// usual, never, or a span such as 30s that the next attempt waits at least
    #[arg(long, value_name = "WHEN")]
    retry: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Heartbeat {
    #[command(flatten)]
    name: Name,
    /// How far the work is: a share from 0 to 1, or a line of text
    #[arg(long, value_name = "SHARE")]
    progress: Option<String>,
    /// Where the next attempt goes on if this one is lost
    #[arg(long, value_name = "TEXT")]
    checkpoint: Option<String>,
}

/// The right to speak for an attempt.
fn token() -> Result<String, Failure> {
    if let Ok(token) = std::env::var(VARIABLE) {
        return Ok(token);
    }
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::usage(format!("the token cannot be read: {error}")))?;
    let token = line.trim();
    if token.is_empty() {
        let text = format!("there is no token: set {VARIABLE}, or send it on standard input");
        return Err(Failure::usage(text));
    }
    Ok(token.to_owned())
}

fn call(name: &Name, what: &str, body: Map<String, Value>) -> Result<Call, Failure> {
    let call = Call::post(format!("{}/{what}", name.path()));
    let call = call.json(Value::Object(body).to_string());
    Ok(call.header(TOKEN, token()?))
}

impl Report {
    pub(super) async fn execute(self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut body = Map::new();
        body.insert("outcome".to_owned(), Value::from(self.outcome));
        let texts = [
            ("error", self.error),
            ("output", self.output),
            ("retry", self.retry),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                body.insert(name.to_owned(), Value::from(value));
            }
        }
        let answer = client.send(call(&self.name, "report", body)?).await?;
        view::print(&answer, json, |taken| {
            let outcome = view::text(&taken["outcome"]);
            if taken["repeated"] == true {
                output::line(&format!("{outcome}, as was reported before"))
            } else {
                output::line(&format!("reported: {outcome}"))
            }
        })
    }
}

impl Heartbeat {
    pub(super) async fn execute(self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut body = Map::new();
        if let Some(progress) = self.progress {
            let share = progress.parse::<f64>();
            let value = share.map_or_else(|_| Value::from(progress), Value::from);
            body.insert("progress".to_owned(), value);
        }
        if let Some(checkpoint) = self.checkpoint {
            body.insert("checkpoint".to_owned(), Value::from(checkpoint));
        }
        let answer = client.send(call(&self.name, "heartbeat", body)?).await?;
        view::print(&answer, json, |heard| {
            if heard["cancel"] == true {
                output::line("cancel: stop, and report")
            } else {
                output::line(&format!("trusted until {}", view::text(&heard["until"])))
            }
        })
    }
}
