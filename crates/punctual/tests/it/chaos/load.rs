//! The jobs that fire meanwhile: every kind of schedule and policy, about so many slots a second.
//!
//! Each ends by itself at a moment that is known from the beginning, so its slots are known to the last one.

use std::sync::Mutex;
use std::time::Duration;

use model::schedule::{Bounds, Cron, CronOptions, Every, Zone};
use model::target::HttpTarget;
use model::{
    CatchUpPolicy, Definition, Delivery, Job, Overlap, Schedule, Slot, Target, TenantId, Timestamp,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::recording::Arrival;
use crate::support::{Answer, Receiver, now};

/// How a job's target behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Quick,
    /// Takes about as long as the job's period.
    Slow,
    /// Fails now and then.
    Flaky,
}

impl Manner {
    fn path(self) -> &'static str {
        match self {
            Self::Quick => "/quick",
            Self::Slow => "/slow",
            Self::Flaky => "/flaky",
        }
    }
}

/// A job, and what must be known of it to check what became of it.
#[derive(Debug, Clone)]
pub struct LoadJob {
    pub id: String,
    pub schedule: Schedule,
    pub overlap: Overlap,
    pub catch_up: CatchUpPolicy,
    pub delivery: Delivery,
    pub manner: Manner,
    pub spread: Duration,
    /// How much later than its slots it is due, in milliseconds: its own place within the spread.
    pub offset: i64,
    /// When its creation had been acknowledged, in milliseconds; one that came late may run late.
    pub known_at: i64,
    body: Value,
}

impl LoadJob {
    fn new(schedule: Schedule, when: Value, manner: Manner) -> Self {
        let body = json!({ "schedule": when, "target": manner.path() });
        Self {
            id: String::new(),
            schedule,
            overlap: Overlap::Allow,
            catch_up: CatchUpPolicy::All,
            delivery: Delivery::AtLeastOnce,
            manner,
            spread: Duration::ZERO,
            offset: 0,
            known_at: 0,
            body,
        }
        .overlap(Overlap::Allow)
        .catch_up(CatchUpPolicy::All)
    }

    pub fn every(span: Duration, anchor: i64, bounds: Bounds, manner: Manner) -> Self {
        let text = format!("{}ms", span.as_millis());
        let anchor = Timestamp::from_millis(anchor);
        let every = Every::parse(&text, anchor, Zone::utc()).unwrap();
        let when = json!({ "every": text, "anchor": anchor.to_string() });
        Self::new(
            bounded(every.into(), bounds),
            with_bounds(when, bounds),
            manner,
        )
    }

    /// Due so long after the end of each run.
    pub fn chain(span: Duration, bounds: Bounds) -> Self {
        let text = format!("{}ms", span.as_millis());
        let every = Every::parse(&text, Timestamp::MIN, Zone::utc()).unwrap();
        let when = json!({ "every": text, "after_completion": true });
        let schedule = bounded(every.after_completion().into(), bounds);
        Self::new(schedule, with_bounds(when, bounds), Manner::Quick)
    }

    pub fn cron(expression: &str, bounds: Bounds, manner: Manner) -> Self {
        let cron = Cron::parse(&[expression.to_owned()], CronOptions::default()).unwrap();
        let when = with_bounds(json!({ "cron": expression }), bounds);
        Self::new(bounded(cron.into(), bounds), when, manner)
    }

    pub fn once(at: i64) -> Self {
        let slot = Slot(Timestamp::from_millis(at));
        let when = json!({ "at": slot.to_string() });
        Self::new(slot.into(), when, Manner::Quick)
    }

    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self.body["overlap"] = json!(overlap.as_str());
        self
    }

    pub fn catch_up(mut self, policy: CatchUpPolicy) -> Self {
        self.catch_up = policy;
        self.body["catch_up"] = json!({ "policy": policy.as_str() });
        self
    }

    fn at_most_once(mut self) -> Self {
        self.delivery = Delivery::AtMostOnce;
        self.body["delivery"] = json!(self.delivery.as_str());
        self
    }

    fn spread(mut self, spread: Duration) -> Self {
        self.spread = spread;
        self.body["spread"] = json!(format!("{}ms", spread.as_millis()));
        self
    }

    fn retrying(mut self) -> Self {
        self.body["retry"] =
            json!({ "attempts_max": 3, "delay_first": "300ms", "delay_max": "2s" });
        self
    }

    /// Made, under this id.
    pub fn acknowledge(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        self.known_at = now();
        if !self.spread.is_zero() {
            let target = HttpTarget::new("http://127.0.0.1/", None).unwrap();
            let mut def = Definition::new(self.schedule.clone(), Target::Http(target));
            def.spread = self.spread;
            let (id, at) = (id.parse().unwrap(), Timestamp::from_millis(self.known_at));
            let job = Job::new(id, TenantId::DEFAULT, None, def, at);
            self.offset = job.due_at(Slot(at)).since(at).as_millis() as i64;
        }
    }

    /// As it is sent, with its target at this address.
    pub fn body(&self, target: &Receiver) -> Value {
        let mut body = self.body.clone();
        body["target"] = json!(target.url(self.manner.path()));
        body
    }

    /// Every slot that it has, unless each run sets the next.
    pub fn slots(&self) -> Vec<i64> {
        let next = |slot: &Slot| self.schedule.next_after(slot.0);
        let first = self.schedule.next_after(Timestamp::MIN);
        std::iter::successors(first, next)
            .map(|slot| slot.0.as_millis())
            .collect()
    }

    /// How long after the end of a run the next slot is, if that is what sets it.
    pub fn link(&self) -> Option<Duration> {
        let period = self.schedule.shortest_period();
        period.filter(|_| self.schedule.after_completion())
    }

    pub fn is_one_off(&self) -> bool {
        !self.schedule.is_recurring()
    }
}

fn bounded(schedule: Schedule, bounds: Bounds) -> Schedule {
    Schedule { bounds, ..schedule }
}

fn with_bounds(mut when: Value, bounds: Bounds) -> Value {
    for (name, moment) in [("starts_at", bounds.starts_at), ("ends_at", bounds.ends_at)] {
        if let Some(moment) = moment {
            when[name] = json!(moment.to_string());
        }
    }
    when
}

/// The share of the slots that one-offs have; they are made along the way.
pub const ONE_OFF_SHARE: f64 = 0.05;

/// Recurring jobs with about `rate` slots a second from `from` to `until`, less the share of one-offs.
pub fn recurring(rate: f64, from: i64, until: i64, seed: u64) -> Vec<LoadJob> {
    let bounds = Bounds {
        starts_at: Some(Timestamp::from_millis(from)),
        ends_at: Some(Timestamp::from_millis(until)),
        runs_max: None,
    };
    let mut mix = Mix {
        rate,
        from,
        bounds,
        random: StdRng::seed_from_u64(seed),
        jobs: Vec::new(),
    };
    mix.add_quick();
    mix.add_cron();
    mix.add_troubled();
    mix.jobs
}

struct Mix {
    rate: f64,
    from: i64,
    bounds: Bounds,
    random: StdRng,
    jobs: Vec<LoadJob>,
}

impl Mix {
    /// So much of the rate, by jobs that are due every so many milliseconds.
    fn share(&mut self, part: f64, period: u64, make: impl Fn(Duration, i64) -> LoadJob) {
        let count = (self.rate * part * period as f64 / 1_000.0)
            .round()
            .max(1.0) as usize;
        for _ in 0..count {
            let anchor = self.from + self.random.random_range(0..period as i64);
            self.jobs.push(make(Duration::from_millis(period), anchor));
        }
    }

    fn every(&self, manner: Manner) -> impl Fn(Duration, i64) -> LoadJob + Copy + use<> {
        let bounds = self.bounds;
        move |span, anchor| LoadJob::every(span, anchor, bounds, manner)
    }

    fn add_quick(&mut self) {
        let bounds = self.bounds;
        let quick = self.every(Manner::Quick);
        self.share(0.22, 1_000, quick);
        self.share(0.05, 3_000, quick);
        self.share(0.02, 7_000, quick);
        self.share(0.18, 1_000, |span, anchor| {
            let job = quick(span, anchor).overlap(Overlap::Skip);
            job.catch_up(CatchUpPolicy::Latest)
        });
        self.share(0.02, 1_000, |span, anchor| {
            quick(span, anchor).catch_up(CatchUpPolicy::None)
        });
        self.share(0.08, 1_000, |span, anchor| {
            quick(span, anchor).at_most_once()
        });
        self.share(0.05, 2_000, |span, anchor| {
            quick(span, anchor).spread(Duration::from_secs(1))
        });
        self.share(0.02, 1_000, |span, _| LoadJob::chain(span, bounds));
    }

    fn add_cron(&mut self) {
        let bounds = self.bounds;
        for (part, period, expression) in [
            (0.12, 1_000, "* * * * * *"),
            (0.03, 2_000, "*/2 * * * * *"),
            (0.02, 3_000, "1-59/3 * * * * *"),
            (0.02, 5_000, "*/5 * * * * *"),
        ] {
            self.share(part, period, |_, _| {
                let job = LoadJob::cron(expression, bounds, Manner::Quick);
                job.overlap(Overlap::Skip).catch_up(CatchUpPolicy::Latest)
            });
        }
    }

    /// Jobs whose runs fail, or last until the next slot.
    fn add_troubled(&mut self) {
        let flaky = self.every(Manner::Flaky);
        self.share(0.05, 1_000, |span, anchor| flaky(span, anchor).retrying());
        let slow = self.every(Manner::Slow);
        self.share(0.01, 2_000, slow);
        let queue_all = Overlap::QueueAll {
            max: Overlap::QUEUE_MAX,
        };
        for (part, period, overlap) in [
            (0.02, 1_000, Overlap::QueueOne),
            (0.02, 1_000, Overlap::Skip),
            (0.01, 2_000, queue_all),
            (0.01, 1_000, Overlap::CancelRunning),
        ] {
            self.share(part, period, |span, anchor| {
                slow(span, anchor).overlap(overlap)
            });
        }
    }
}

/// What the jobs call: writes down who came when, and answers by their manner.
pub fn target() -> (Receiver, &'static Mutex<Vec<Arrival>>) {
    // Connections may outlive the test; what they write to must as well.
    let arrivals: &'static Mutex<Vec<Arrival>> = Box::leak(Box::default());
    let receiver = Receiver::forgetting(move |delivery| {
        let arrival = Arrival::of(delivery);
        let chance = arrival.chance();
        let answer = match delivery.path.as_str() {
            // Some last into the slot after the next; together they leave time to catch up after a fault.
            "/slow" if chance.is_multiple_of(4) => {
                Answer::ok().after(Duration::from_millis(1_200 + chance / 4 % 1_000))
            }
            "/slow" => Answer::ok().after(Duration::from_millis(50 + chance % 300)),
            "/flaky" if chance % 100 < 20 => Answer::status(503),
            _ => Answer::ok(),
        };
        arrivals.lock().unwrap().push(arrival);
        answer
    });
    (receiver, arrivals)
}
