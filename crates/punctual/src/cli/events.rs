//! `punctual events`: a line each time that something has changed.

use clap::Args;
use http_body_util::BodyExt;
use serde_json::Value;

use super::output;
use super::view::{self, text};
use crate::client::{Client, with_query};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
The first line comes at once: from then on nothing is missed. Each line after it says that there is something new to see, with
'punctual overview' or with 'punctual run show'; several changes within a second are one line. It goes on until it is interrupted, the key is
revoked or the server stops, unless --events-max says otherwise.

Examples:
  punctual events
  punctual events --run run_01a1… --events-max 2 && punctual run show run_01a1…
  punctual events --json";

/// What to watch.
#[derive(Debug, Args)]
pub(super) struct Events {
    /// A run; all jobs of the tenant by default
    #[arg(long)]
    run: Option<String>,
    /// End after so many lines
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    events_max: Option<u32>,
}

pub(super) async fn execute(it: &Events, client: &Client, json: bool) -> Result<(), Failure> {
    let mut query: Vec<_> = it.run.iter().map(|run| ("run", run.clone())).collect();
    query.extend(it.events_max.map(|most| ("events_max", most.to_string())));
    let path = with_query("/v1/events", &query);
    let mut answer = client.download(&path).await?.into_body();
    let mut rest = Vec::new();
    while let Some(frame) = answer.frame().await {
        let frame = frame.map_err(|error| client.silent(&format!("broke off: {error}")))?;
        rest.extend(frame.into_data().unwrap_or_default());
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = rest.drain(..end + 2).collect();
            show(&String::from_utf8_lossy(&event), json)?;
        }
    }
    Ok(())
}

/// Comments only say that the server is there.
fn show(event: &str, json: bool) -> Result<(), Failure> {
    let Some((name, mut data)) = read(event) else {
        return Ok(());
    };
    if json {
        data["event"] = Value::from(name);
        return output::json(data.to_string().as_bytes());
    }
    output::line(&format!("{} {}", text(&data["at"]), output::clean(name)))
}

/// The name and the data of an event.
fn read(event: &str) -> Option<(&str, Value)> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let data = view::parse(field("data: ")?.as_bytes()).ok()?;
    Some((field("event: ")?, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_name_and_data_and_a_comment_has_neither() {
        let event = "event: changed\ndata: {\"at\":\"2026-11-18T02:00:00.000Z\"}\n\n";
        let (name, data) = read(event).unwrap();
        assert_eq!(
            (name, text(&data["at"])),
            ("changed", "2026-11-18T02:00:00.000Z".to_owned())
        );
        assert_eq!(read(":\n\n"), None);
    }
}
