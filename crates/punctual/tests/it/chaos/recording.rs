//! What was seen: history and slots as the API lists them, arrivals at the target, and the faults between.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;

use serde_json::Value;

use super::faults::Strike;
use super::load::LoadJob;
use crate::support::{Delivery, Http, list, moment};

/// One-offs whose slots are read as well; there are thousands.
const ONE_OFFS_READ: usize = 200;

/// One callback.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub job: Box<str>,
    pub run: Box<str>,
    pub node: Box<str>,
    pub slot: i64,
    pub attempt: u32,
    pub at_micros: i64,
}

impl Arrival {
    pub fn of(delivery: &Delivery) -> Self {
        let text = |name: &str| Box::from(delivery.header(name));
        Self {
            job: text("punctual-job"),
            run: text("punctual-run"),
            node: text("punctual-node"),
            slot: moment(&Value::from(delivery.header("punctual-slot"))),
            attempt: delivery.header("punctual-attempt").parse().unwrap(),
            at_micros: delivery.at_micros,
        }
    }

    /// The same number for the same attempt of the same run.
    pub fn chance(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.run, self.attempt).hash(&mut hasher);
        hasher.finish()
    }
}

/// A line of history.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: String,
    pub job: String,
    pub slot: i64,
    /// Of the last attempt.
    pub due_at: i64,
    pub state: String,
    pub attempt: u32,
    pub reason: Option<String>,
    /// Of the first attempt, as far as is known.
    pub dispatched_at: Option<i64>,
    pub settled_at: Option<i64>,
    /// First slot, last slot, and how many, when it stands for several.
    pub stretch: Option<(i64, i64, u64)>,
}

impl Entry {
    fn of(run: &Value) -> Self {
        let text = |name: &str| run[name].as_str().map(str::to_owned);
        let stretch = &run["stretch"];
        let when = |name: &str| run[name].is_string().then(|| moment(&run[name]));
        Self {
            id: text("id").unwrap(),
            job: text("job").unwrap(),
            slot: moment(&run["slot"]),
            due_at: moment(&run["due_at"]),
            state: text("state").unwrap(),
            attempt: u32::try_from(run["attempt"].as_u64().unwrap()).unwrap(),
            reason: text("reason"),
            dispatched_at: when("dispatched_at"),
            settled_at: when("settled_at"),
            stretch: stretch["count"]
                .as_u64()
                .map(|count| (moment(&stretch["first"]), moment(&stretch["last"]), count)),
        }
    }
}

/// A slot, or several in a row, as `GET /v1/jobs/{id}/slots` lists it.
#[derive(Debug, Clone)]
pub struct SlotAnswer {
    pub first: i64,
    pub last: i64,
    pub count: u64,
    pub fate: String,
    pub run: Option<String>,
}

impl SlotAnswer {
    fn of(item: &Value) -> Self {
        let several = |name: &str| {
            let found = &item[name];
            moment(if found.is_string() {
                found
            } else {
                &item["slot"]
            })
        };
        Self {
            first: several("first"),
            last: several("last"),
            count: item["count"].as_u64().unwrap_or(1),
            fate: item["fate"].as_str().unwrap().to_owned(),
            run: item["run"]["id"].as_str().map(str::to_owned),
        }
    }
}

#[derive(Debug, Default)]
pub struct Recording {
    pub jobs: Vec<LoadJob>,
    pub entries: Vec<Entry>,
    pub arrivals: Vec<Arrival>,
    /// By job.
    pub answers: BTreeMap<String, Vec<SlotAnswer>>,
    pub strikes: Vec<Strike>,
}

impl Recording {
    /// Reads all that the API has; also answers history as it came, for the record.
    pub fn read(
        http: &Http,
        jobs: Vec<LoadJob>,
        mut arrivals: Vec<Arrival>,
        strikes: Vec<Strike>,
    ) -> (Self, Vec<Value>) {
        let history = list(http, "/v1/runs?");
        let mut one_offs = 0;
        let read: Vec<&LoadJob> = jobs
            .iter()
            .filter(|job| {
                one_offs += usize::from(job.is_one_off());
                !job.is_one_off() || one_offs <= ONE_OFFS_READ
            })
            .collect();
        let answers = read_all_slots(http, &read);
        arrivals.sort_by_key(|arrival| arrival.at_micros);
        let recording = Self {
            entries: history.iter().map(Entry::of).collect(),
            jobs,
            arrivals,
            answers,
            strikes,
        };
        (recording, history)
    }
}

/// The slots of each job, several jobs at a time.
fn read_all_slots(http: &Http, jobs: &[&LoadJob]) -> BTreeMap<String, Vec<SlotAnswer>> {
    let share = jobs.len().div_ceil(4).max(1);
    thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .chunks(share)
            .map(|jobs| {
                scope.spawn(|| {
                    jobs.iter()
                        .map(|job| read_slots(http, job))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn read_slots(http: &Http, job: &LoadJob) -> (String, Vec<SlotAnswer>) {
    let items = list(http, &format!("/v1/jobs/{}/slots?", job.id));
    (job.id.clone(), items.iter().map(SlotAnswer::of).collect())
}
