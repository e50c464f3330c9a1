//! `punctual events`: a line each time that something has changed.

use clap::Args;
use http_body_util::BodyExt;
use hyper::body::Incoming;
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
    let mut events = Stream::open(client, &path).await?;
    loop {
        match events.frame().await? {
            Frame::Beat => {}
            Frame::Event(name, data) => show(&name, data, json)?,
            Frame::End => return Ok(()),
        }
    }
}

/// What comes next of a stream.
pub(super) enum Frame {
    /// The name and the data of an event.
    Event(String, Value),
    /// The server is there, and that is all.
    Beat,
    End,
}

/// Events that a server sends for as long as it is listened to.
pub(super) struct Stream<'a> {
    client: &'a Client,
    body: Incoming,
    rest: Vec<u8>,
}

impl<'a> Stream<'a> {
    pub(super) async fn open(client: &'a Client, path: &str) -> Result<Self, Failure> {
        let body = client.download(path).await?.into_body();
        let rest = Vec::new();
        Ok(Self { client, body, rest })
    }

    pub(super) async fn frame(&mut self) -> Result<Frame, Failure> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = self.rest.drain(..end + 2).collect();
                let event = read(&String::from_utf8_lossy(&frame));
                return Ok(event.map_or(Frame::Beat, |(name, data)| Frame::Event(name, data)));
            }
            let Some(bytes) = self.body.frame().await else {
                return Ok(Frame::End);
            };
            let broken = |error| self.client.silent(&format!("broke off: {error}"));
            let bytes = bytes.map_err(broken)?;
            self.rest.extend(bytes.into_data().unwrap_or_default());
        }
    }
}

fn show(name: &str, mut data: Value, json: bool) -> Result<(), Failure> {
    if json {
        data["event"] = Value::from(name);
        return output::json(data.to_string().as_bytes());
    }
    output::line(&format!("{} {}", text(&data["at"]), output::clean(name)))
}

/// The name and the data of an event.
fn read(event: &str) -> Option<(String, Value)> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let data = view::parse(field("data: ")?.as_bytes()).ok()?;
    Some((field("event: ")?.to_owned(), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_name_and_data_and_a_comment_has_neither() {
        let event = "event: changed\ndata: {\"at\":\"2026-11-18T02:00:00.000Z\"}\n\n";
        let (name, data) = read(event).unwrap();
        assert_eq!(
            (name.as_str(), text(&data["at"])),
            ("changed", "2026-11-18T02:00:00.000Z".to_owned())
        );
        assert_eq!(read(":\n\n"), None);
    }
}
