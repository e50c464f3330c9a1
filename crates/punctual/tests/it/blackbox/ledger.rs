//! Slots, history and deliveries, held against each other: every slot is in history exactly once, delivered at
//! least once unless it was skipped, never early, and again only as a later attempt of the same run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::world::{Planned, moment, slot_of};
use crate::support::Delivery;

/// Faults that are shown of all that were found.
const SHOWN: usize = 20;

/// A line of history.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: String,
    pub job: String,
    pub slot: Option<i64>,
    pub state: String,
    pub attempt: u32,
    pub reason: Option<String>,
    /// First slot, last slot, and how many, when it stands for several.
    pub stretch: Option<(i64, i64, u64)>,
}

impl Entry {
    pub fn of(run: &Value) -> Self {
        let text = |name: &str| run[name].as_str().map(str::to_owned);
        let stretch = &run["stretch"];
        Self {
            id: text("id").unwrap(),
            job: text("job").unwrap(),
            slot: run["slot"].as_str().map(|_| moment(&run["slot"])),
            state: text("state").unwrap(),
            attempt: u32::try_from(run["attempt"].as_u64().unwrap()).unwrap(),
            reason: text("reason"),
            stretch: stretch["count"]
                .as_u64()
                .map(|count| (moment(&stretch["first"]), moment(&stretch["last"]), count)),
        }
    }
}

/// A delivery as far as the ledger cares.
#[derive(Debug, Clone)]
struct Arrival {
    job: String,
    slot: i64,
    attempt: u32,
    at_micros: i64,
}

impl Arrival {
    fn of(delivery: &Delivery) -> (String, Self) {
        let arrival = Self {
            job: delivery.header("punctual-job").to_owned(),
            slot: slot_of(delivery),
            attempt: delivery.header("punctual-attempt").parse().unwrap(),
            at_micros: delivery.at_micros,
        };
        (delivery.header("punctual-run").to_owned(), arrival)
    }
}

/// What a whole ledger comes to.
#[derive(Debug, Default)]
pub struct Figures {
    pub slots: usize,
    pub runs: usize,
    pub skipped_slots: u64,
    pub deliveries: usize,
    /// Deliveries beyond the first of a run.
    pub repeats: usize,
    pub latest_millis: i64,
}

pub struct Ledger<'a> {
    planned: &'a [Planned],
    history: &'a [Entry],
    arrivals: BTreeMap<String, Vec<Arrival>>,
    /// The server's clock when ours shows that, in microseconds.
    clock: &'a dyn Fn(i64) -> i64,
    figures: Figures,
    faults: Vec<String>,
}

impl<'a> Ledger<'a> {
    pub fn new(
        planned: &'a [Planned],
        history: &'a [Entry],
        deliveries: impl IntoIterator<Item = Delivery>,
    ) -> Self {
        let mut arrivals: BTreeMap<String, Vec<Arrival>> = BTreeMap::new();
        for delivery in deliveries {
            let (run, arrival) = Arrival::of(&delivery);
            arrivals.entry(run).or_default().push(arrival);
        }
        Self {
            planned,
            history,
            arrivals,
            clock: &|micros| micros,
            figures: Figures::default(),
            faults: Vec::new(),
        }
    }

    /// For a server whose clock is not ours.
    pub fn with_clock(mut self, clock: &'a dyn Fn(i64) -> i64) -> Self {
        self.clock = clock;
        self
    }

    /// Balances the books, or says what is wrong with them.
    #[track_caller]
    pub fn check(self) -> Figures {
        let (figures, faults) = self.balance();
        let shown = &faults[..faults.len().min(SHOWN)];
        assert!(
            faults.is_empty(),
            "{} faults, such as:\n{}\n{figures:?}",
            faults.len(),
            shown.join("\n")
        );
        figures
    }

    fn balance(mut self) -> (Figures, Vec<String>) {
        self.check_slots();
        self.check_runs();
        self.check_arrivals();
        (self.figures, self.faults)
    }

    /// Every slot of every job is in history exactly once, and nothing else is.
    fn check_slots(&mut self) {
        let mut by_job: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in self.history {
            by_job.entry(&entry.job).or_default().push(entry);
        }
        for job in self.planned {
            let entries = by_job.remove(job.id.as_str()).unwrap_or_default();
            self.check_job(job, &entries);
        }
        for job in by_job.keys() {
            self.faults
                .push(format!("{job} has runs and nobody made it"));
        }
    }

    fn check_job(&mut self, job: &Planned, entries: &[&Entry]) {
        let mut decided: Vec<i64> = Vec::new();
        for entry in entries {
            match (entry.stretch, entry.slot) {
                (Some((first, last, count)), _) => {
                    let slots = job.slots_between(first, last);
                    if slots.len() as u64 != count {
                        self.faults
                            .push(format!("{entry:?} has {} slots", slots.len()));
                    }
                    decided.extend(slots);
                }
                (None, Some(slot)) => decided.push(slot),
                (None, None) => self
                    .faults
                    .push(format!("{entry:?} stands for no slot of {}", job.id)),
            }
        }
        decided.sort_unstable();
        let last = decided.last().copied().unwrap_or(job.until);
        let expected = job.slots(last.max(job.until));
        self.figures.slots += expected.len();
        if decided != expected {
            self.faults
                .push(difference(job, &decided, &expected, entries));
        }
    }

    /// Every run ended well and reached its target, unless it was skipped or cancelled for a reason.
    fn check_runs(&mut self) {
        let mut ids = BTreeSet::new();
        for entry in self.history {
            if !ids.insert(&entry.id) {
                self.faults.push(format!("{entry:?} is in history twice"));
            }
            let arrivals = self.arrivals.get(&entry.id).map_or(&[][..], Vec::as_slice);
            match entry.state.as_str() {
                "succeeded" => {
                    self.figures.runs += 1;
                    if arrivals
                        .iter()
                        .all(|arrival| arrival.attempt != entry.attempt)
                    {
                        self.faults
                            .push(format!("{entry:?} was not delivered: {arrivals:?}"));
                    }
                }
                "skipped" if entry.reason.is_some() => {
                    self.figures.skipped_slots += entry.stretch.map_or(1, |(_, _, count)| count);
                    if !arrivals.is_empty() {
                        self.faults
                            .push(format!("{entry:?} was delivered: {arrivals:?}"));
                    }
                }
                "cancelled" if entry.reason.is_some() => self.figures.runs += 1,
                _ => self
                    .faults
                    .push(format!("{entry:?} did not end well: {arrivals:?}")),
            }
        }
    }

    fn check_arrivals(&mut self) {
        let entries: BTreeMap<&str, &Entry> = self
            .history
            .iter()
            .map(|entry| (entry.id.as_str(), entry))
            .collect();
        for (run, arrivals) in &self.arrivals {
            self.figures.deliveries += arrivals.len();
            self.figures.repeats += arrivals.len() - 1;
            let Some(entry) = entries.get(run.as_str()) else {
                self.faults
                    .push(format!("{run} is not in history: {arrivals:?}"));
                continue;
            };
            if arrivals
                .windows(2)
                .any(|pair| pair[1].attempt <= pair[0].attempt)
            {
                self.faults.push(format!(
                    "{run} came again as no later attempt: {arrivals:?}"
                ));
            }
            for arrival in arrivals {
                let late = (self.clock)(arrival.at_micros) - arrival.slot * 1_000;
                self.figures.latest_millis = self.figures.latest_millis.max(late / 1_000);
                if late < 0 {
                    self.faults
                        .push(format!("{run} came {} µs early: {arrival:?}", -late));
                }
                if arrival.job != entry.job || Some(arrival.slot) != entry.slot {
                    self.faults
                        .push(format!("{arrival:?} is not what history says: {entry:?}"));
                }
            }
        }
    }
}

/// Which slots are missing, and which are there too often.
fn difference(job: &Planned, decided: &[i64], expected: &[i64], entries: &[&Entry]) -> String {
    let has = |slots: &[i64], slot: &i64| slots.iter().filter(|found| *found == slot).count();
    let missing: Vec<&i64> = expected
        .iter()
        .filter(|slot| has(decided, slot) == 0)
        .collect();
    let extra: Vec<&i64> = decided
        .iter()
        .filter(|slot| has(decided, slot) != has(expected, slot))
        .collect();
    let near: Vec<&&Entry> = entries
        .iter()
        .filter(|entry| {
            let odd = |slot: &&&i64| {
                entry
                    .slot
                    .is_some_and(|found| (found - **slot).abs() <= 1_000)
            };
            missing.iter().any(|slot| odd(&slot)) || extra.iter().any(|slot| odd(&slot))
        })
        .take(6)
        .collect();
    format!(
        "{} lacks the slots {missing:?} and has too often {extra:?}: first {}, until {}; near them {near:?}",
        job.id, job.first, job.until
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "job_1";

    fn entry(slot: i64, state: &str) -> Entry {
        Entry {
            id: format!("run_{slot}"),
            job: JOB.to_owned(),
            slot: Some(slot),
            state: state.to_owned(),
            attempt: 1,
            reason: (state == "skipped").then(|| "missed".to_owned()),
            stretch: None,
        }
    }

    fn delivery(slot: i64, attempt: u32, late: i64) -> Delivery {
        let headers = [
            ("punctual-job", JOB.to_owned()),
            ("punctual-run", format!("run_{slot}")),
            ("punctual-attempt", attempt.to_string()),
            (
                "punctual-slot",
                model::Timestamp::from_millis(slot).to_string(),
            ),
        ];
        Delivery {
            at_micros: slot * 1_000 + late,
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect(),
            body: Vec::new(),
        }
    }

    /// How many faults three slots have after something was done to their books.
    fn faults(harm: impl FnOnce(&mut Vec<Entry>, &mut Vec<Delivery>)) -> usize {
        let mut planned = Planned::every_second(1_000, "").named(JOB);
        planned.until = 3_000;
        let slots = [1_000, 2_000, 3_000];
        let mut history: Vec<Entry> = slots.map(|slot| entry(slot, "succeeded")).to_vec();
        let mut deliveries: Vec<Delivery> = slots.map(|slot| delivery(slot, 1, 0)).to_vec();
        harm(&mut history, &mut deliveries);
        let planned = [planned];
        let ledger = Ledger::new(&planned, &history, deliveries);
        ledger.balance().1.len()
    }

    #[test]
    fn the_ledger_sees_what_is_wrong() {
        assert_eq!(faults(|_, _| ()), 0);
        let stretch = |history: &mut Vec<Entry>, count| {
            history[1] = entry(2_000, "skipped");
            history[1].stretch = Some((2_000, 3_000, count));
            history.pop();
        };
        assert_eq!(
            faults(|history, deliveries| {
                stretch(history, 2);
                deliveries.truncate(1);
            }),
            0
        );
        assert!(faults(|history, _| stretch(history, 2)) > 0, "delivered");
        assert!(faults(|history, _| stretch(history, 5)) > 0, "miscounted");
        assert!(faults(|history, _| drop(history.remove(1))) > 0, "lost");
        assert!(faults(|history, _| drop(history.pop())) > 0, "lost at last");
        assert!(faults(|history, _| history.push(history[0].clone())) > 0);
        assert!(faults(|history, _| history[0].state = "dead".to_owned()) > 0);
        assert!(faults(|_, deliveries| drop(deliveries.pop())) > 0, "silent");
        assert!(faults(|_, deliveries| deliveries[0] = delivery(1_000, 1, -1)) > 0);
        assert!(faults(|_, deliveries| deliveries.push(delivery(1_000, 1, 5))) > 0);
        assert_eq!(
            faults(|_, deliveries| deliveries.push(delivery(1_000, 2, 5))),
            0
        );
        assert!(faults(|_, deliveries| deliveries.push(delivery(4_000, 1, 5))) > 0);
    }
}
