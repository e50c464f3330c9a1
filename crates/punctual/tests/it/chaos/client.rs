//! A client that makes jobs all along, whatever happens to the nodes: it tries the next one until somebody
//! acknowledges, always under the same `Idempotency-Key`, so that a job is never made twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fleet::{Addresses, NODES};
use super::load::LoadJob;
use crate::support::{Http, Receiver, now, pause};

/// How long one node may take to answer before the next is called.
const PATIENCE: Duration = Duration::from_secs(2);
/// After so long without an acknowledgement a job counts as refused.
const GIVES_UP_AFTER: i64 = 60_000;

pub struct Client<'a> {
    pub addresses: Addresses,
    pub target: &'a Receiver,
    pub stop: &'a AtomicBool,
    pub seed: u64,
    /// Jobs a second.
    pub rate: f64,
    /// No job is due later.
    pub until: i64,
}

/// What came of it.
#[derive(Default)]
pub struct Made {
    pub jobs: Vec<LoadJob>,
    /// Answers that were no acknowledgement, and how often.
    pub refusals: std::collections::BTreeMap<String, usize>,
    /// Jobs that nobody would take.
    pub given_up: usize,
}

impl Client<'_> {
    pub fn make_jobs(&self) -> Made {
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut made = Made::default();
        let gap = Duration::from_secs_f64(1.0 / self.rate);
        for number in 0.. {
            // Half of them are due soon after; the others are known to everyone by then.
            let ahead = if random.random() {
                random.random_range(500..2_000)
            } else {
                random.random_range(8_000..15_000)
            };
            let due = now() + ahead;
            if self.stop.load(Ordering::Relaxed) || due > self.until {
                return made;
            }
            let key = format!("chaos-{}-{number}", self.seed);
            match self.make(LoadJob::once(due), &key, number, &mut made) {
                Some(job) => made.jobs.push(job),
                None => made.given_up += 1,
            }
            pause(gap);
        }
        made
    }

    fn make(&self, mut job: LoadJob, key: &str, first: usize, made: &mut Made) -> Option<LoadJob> {
        let body = job.body(self.target).to_string();
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        let begun = now();
        let tries = (first..).take_while(|_| now() - begun < GIVES_UP_AFTER);
        for number in tries {
            let address = self.addresses.of(number % NODES);
            let reply = address.and_then(|address| {
                let http = Http::new(&address).patient(PATIENCE);
                http.try_send("POST", "/v1/jobs", &headers, body.as_bytes())
            });
            let said = match &reply {
                Some(reply) => reply.status.to_string(),
                None => "no answer".to_owned(),
            };
            let created = reply
                .filter(|reply| [200, 201].contains(&reply.status))
                .and_then(|reply| serde_json::from_slice::<serde_json::Value>(&reply.body).ok());
            if let Some(created) = created {
                job.acknowledge(created["id"].as_str()?);
                return Some(job);
            }
            *made.refusals.entry(said).or_default() += 1;
            pause(Duration::from_millis(100));
        }
        None
    }
}
