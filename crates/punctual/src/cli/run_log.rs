//! `punctual run log`: what a run has said of its work, and what it says from now on.

use std::time::Duration;

use clap::Args;
use engine::{Clock, SystemClock};
use serde_json::Value;
use tokio::time::timeout;

use super::events::{Frame, Stream};
use super::run::Name;
use super::{output, view};
use crate::client::{Call, Client, with_query};
use crate::failure::{Code, Failure};

/// How often a server is tried again that has gone away while its log was followed, and how far apart.
const TRIES_MAX: u32 = 60;
const AGAIN: Duration = Duration::from_secs(1);
/// A server that is there says something every ten seconds.
const SILENT_MAX: Duration = Duration::from_secs(30);

pub(super) const HELP: &str = "\
A command's log is what it writes; work that is handed over appends to it itself. With --follow each part is printed as it comes, until
the run has ended; a server that goes away is tried again for a minute, and any node will do.

Examples:
  punctual run log run_01a1…
  punctual run log run_01a1… --follow
  punctual job run backup --json | jq -r .id | xargs punctual run log -f";

#[derive(Debug, Args)]
pub(super) struct Log {
    #[command(flatten)]
    name: Name,
    /// Only what comes at this byte or later
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    after: u64,
    /// Go on until the run has ended
    #[arg(long, short)]
    follow: bool,
}

/// How far a log is printed.
struct Printed {
    next: u64,
    json: bool,
}

impl Printed {
    /// A part. Answers whether it brought anything.
    fn part(&mut self, part: &Value) -> Result<bool, Failure> {
        if self.json {
            output::json(part.to_string().as_bytes())?;
        } else {
            let from = part["from"].as_u64();
            let skipped = from.and_then(|from| from.checked_sub(self.next));
            if let Some(skipped) = skipped.filter(|it| *it > 0) {
                output::note(&format!("{skipped} bytes in between are not kept"));
            }
            output::bytes(part["text"].as_str().unwrap_or_default().as_bytes())?;
        }
        let end = part["next"].as_u64().filter(|end| *end > self.next);
        self.next = end.unwrap_or(self.next);
        Ok(end.is_some())
    }
}

impl Log {
    pub(super) async fn execute(self, client: &Client, json: bool) -> Result<(), Failure> {
        let mut printed = Printed {
            next: self.after,
            json,
        };
        if self.follow {
            return self.follow(client, printed).await;
        }
        loop {
            let answer = client.send(Call::get(self.path(printed.next))).await?;
            let goes_on = printed.part(&view::parse(&answer)?)?;
            // A program requests the next part itself.
            if !goes_on || json {
                return Ok(());
            }
        }
    }

    fn path(&self, after: u64) -> String {
        let mut query = vec![("after", after.to_string())];
        query.extend(self.follow.then(|| ("follow", "true".to_owned())));
        with_query(&format!("{}/log", self.name.path()), &query)
    }

    async fn follow(self, client: &Client, mut printed: Printed) -> Result<(), Failure> {
        // A server that was never there has not gone away.
        let mut tries_left = 0;
        loop {
            let away = match self.read(client, &mut printed, &mut tries_left).await {
                Ok(true) => return Ok(()),
                Ok(false) => client.silent("ended the log before the run has ended"),
                Err(failure) if is_passing(&failure) => failure,
                Err(failure) => return Err(failure),
            };
            if tries_left == 0 {
                return Err(away);
            }
            tries_left -= 1;
            output::note(&format!("{away}; trying again"));
            SystemClock.sleep(AGAIN).await;
        }
    }

    /// Whether it was read to its end.
    async fn read(
        &self,
        client: &Client,
        printed: &mut Printed,
        tries_left: &mut u32,
    ) -> Result<bool, Failure> {
        let mut stream = Stream::open(client, &self.path(printed.next)).await?;
        *tries_left = TRIES_MAX;
        loop {
            let next = timeout(SILENT_MAX, stream.frame()).await;
            match next.map_err(|_| client.silent("says nothing any more"))?? {
                Frame::Beat => {}
                Frame::Event(name, part) => {
                    printed.part(&part)?;
                    if name == "end" {
                        return Ok(true);
                    }
                }
                Frame::End => return Ok(false),
            }
        }
    }
}

/// Whether it may go better in a moment.
fn is_passing(failure: &Failure) -> bool {
    failure.code == Code::Unreachable || failure.is_problem("not-ready")
}
