//! The life of a job whose next slot is set by the end of its run: it is never stuck, never has two runs,
//! and each slot that comes is accounted for once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::id::{JobId, TenantId};
use crate::job::Definition;
use crate::policy::CatchUp;
use crate::schedule::samples::{Chance, at, calendar, every, random_calendars};
use crate::schedule::{Bounds, Kind, Schedule};
use crate::target::Target;

const BASE: i64 = 1_792_800_000;
const DAY: i64 = 86_400;

#[derive(Debug, Clone)]
enum Op {
    Fire { late: i64, inserted: bool },
    End { after: i64 },
    Pause { after: i64 },
    Resume { after: i64, catch_up: bool },
    Edit { after: i64, schedule: Option<u64> },
    Swap { after: i64, calendars: u64 },
    Reschedule { after: i64 },
    Withdraw { too_late: bool },
}

fn a_while() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 0_i64..3, 0_i64..900, 0_i64..2 * DAY]
}

fn op() -> impl Strategy<Value = Op> {
    let late = prop_oneof![3 => -2_i64..0, 3 => 0_i64..=10, 2 => 0_i64..2 * DAY];
    prop_oneof![
        8 => (late, prop::bool::weighted(0.8)).prop_map(|(late, inserted)| Op::Fire { late, inserted }),
        6 => a_while().prop_map(|after| Op::End { after }),
        2 => a_while().prop_map(|after| Op::Pause { after }),
        4 => (a_while(), any::<bool>())
            .prop_map(|(after, catch_up)| Op::Resume { after, catch_up }),
        3 => (a_while(), prop::option::of(any::<u64>()))
            .prop_map(|(after, schedule)| Op::Edit { after, schedule }),
        1 => (a_while(), any::<u64>())
            .prop_map(|(after, calendars)| Op::Swap { after, calendars }),
        1 => a_while().prop_map(|after| Op::Reschedule { after }),
        1 => any::<bool>().prop_map(|too_late| Op::Withdraw { too_late }),
    ]
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn node() -> Arc<str> {
    Arc::from("node")
}

fn delay(text: &str) -> Schedule {
    let mut schedule = every(text, "2026-10-01T12:00:00Z", "Europe/Berlin");
    if let Kind::Every(every) = &mut schedule.kind {
        every.after_completion = true;
    }
    schedule
}

fn definition(seed: u64) -> Definition {
    let mut chance = Chance(seed >> 1);
    let mut schedule = delay(chance.pick(&["10m", "PT3H", "P1D", "90s"]));
    let mut bound = |chances: u64| {
        let moment = BASE + chance.below(9 * DAY as u64) as i64;
        (chance.below(chances) == 0).then(|| second(moment))
    };
    schedule.bounds = Bounds {
        starts_at: bound(4),
        ends_at: bound(4),
        runs_max: None,
    };
    schedule.bounds.runs_max = (chance.below(4) == 0).then(|| 1 + chance.below(5) as u32);
    if chance.below(2) == 0 {
        schedule.calendars = random_calendars(&mut chance, BASE + 3 * DAY);
    }
    let mut def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    def.catch_up = CatchUp {
        policy: CatchUpPolicy::ALL[chance.below(3) as usize],
        window: Duration::from_secs([60, 7_200][chance.below(2) as usize]),
        max: 1,
    };
    def
}

struct Life {
    job: Job,
    now: Timestamp,
    /// The run that lives, by its slot.
    lives: Option<Slot>,
    /// It is marked to come back.
    marked: bool,
    recorded: BTreeSet<Timestamp>,
    runs: u32,
    tale: Vec<String>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let now = second(BASE);
        let id = JobId::new(now, [7; 10]);
        Self {
            job: Job::new(id, TenantId::DEFAULT, None, definition(seed), now),
            now,
            lives: None,
            marked: false,
            recorded: BTreeSet::new(),
            runs: 0,
            tale: Vec::new(),
        }
    }

    fn record(&mut self, slot: Slot) {
        assert!(
            self.recorded.insert(slot.0),
            "{slot} twice: {}",
            self.tale()
        );
    }

    fn write(&mut self, skips: &[Skip]) {
        for skip in skips {
            let slot = skip.slots.first;
            assert_eq!(skip.slots, Stretch::one(slot), "{}", self.tale());
            // Only a slot that the end of a run has set exists.
            assert_eq!(self.job.next_slot, Some(slot), "{}", self.tale());
            self.record(slot);
        }
    }

    fn step(&mut self, op: &Op) {
        let before = self.job.next_slot;
        self.act(op);
        self.tale.push(format!(
            "{} {op:?}: {:?} next {:?} last {:?} lives {:?} left {:?}",
            self.now,
            self.job.state,
            self.job.next_slot,
            self.job.slot_last,
            self.lives,
            self.job.runs_left()
        ));
        let rests = self.job.is_resting();
        assert!(!rests || self.lives.is_some(), "stuck: {}", self.tale());
        if let Some(next) = self.job.next_slot {
            assert_eq!(self.job.state, JobState::Active, "{}", self.tale());
            assert!(self.lives.is_none(), "does not rest: {}", self.tale());
            let bounds = self.job.def.schedule.bounds;
            assert!(
                bounds.ends_at.is_none_or(|end| next.0 <= end),
                "{}",
                self.tale()
            );
            assert!(!self.recorded.contains(&next.0), "{}", self.tale());
        }
        if let Some(slot) = before.filter(|slot| slot.0 <= self.now)
            && self.job.next_slot != before
        {
            let waits = !self.job.def.schedule.keeps(slot);
            assert!(
                waits || self.recorded.contains(&slot.0),
                "{slot} lost: {}",
                self.tale()
            );
        }
    }

    fn act(&mut self, op: &Op) {
        let me = node();
        match op {
            Op::Fire { late, inserted } => self.fire(*late, *inserted),
            Op::End { after } => {
                self.wait(*after);
                if self.lives.take().is_some() {
                    self.job = self.job.rested(self.now);
                }
            }
            Op::Pause { after } => {
                self.wait(*after);
                if self.job.state == JobState::Active {
                    let (job, skips) = self.job.paused(self.now, None, &me);
                    self.change(job, &skips, *after);
                }
            }
            Op::Resume { after, catch_up } => {
                self.wait(*after);
                if self.job.state == JobState::Paused {
                    let (job, skips) = self.job.resumed(self.now, *catch_up, &me);
                    self.change(job, &skips, *after);
                }
            }
            Op::Edit { after, schedule } => {
                self.wait(*after);
                let same = || Definition {
                    timeout: Duration::from_secs(1),
                    ..Definition::clone(&self.job.def)
                };
                let def = schedule.map_or_else(same, definition);
                let (job, skips) = self.job.edited(None, def, self.now, &me);
                self.change(job, &skips, *after);
            }
            Op::Swap { after, calendars } => {
                self.wait(*after);
                let mut calendars = random_calendars(&mut Chance(calendars >> 1), BASE + 3 * DAY);
                let all = calendars.exclude.iter_mut().chain(&mut calendars.only);
                all.for_each(|it| Arc::make_mut(it).updated_at = self.now);
                if !self.job.def.schedule.calendars.is_empty() && !calendars.is_empty() {
                    Arc::make_mut(&mut self.job.def).schedule.calendars = calendars;
                }
            }
            Op::Reschedule { after } => {
                self.wait(*after);
                let (job, skips) = self.job.rescheduled(self.now, &me);
                self.change(job, &skips, *after);
            }
            Op::Withdraw { too_late } => self.withdraw(*too_late),
        }
    }

    fn wait(&mut self, seconds: i64) {
        self.withdraw(seconds % 2 == 0);
        self.now = self.now.plus(Duration::from_secs(seconds as u64));
    }

    fn fire(&mut self, late: i64, inserted: bool) {
        self.withdraw(late % 2 == 0);
        let Some(next) = self.job.next_slot else {
            return;
        };
        if next.0 > second(BASE + 60 * DAY) {
            return;
        }
        let due = next.0.as_millis() + late * 1_000;
        self.now = self.now.max(Timestamp::from_millis(due));
        let decision = self.job.decide(next, self.now, &node());
        self.write(&decision.passed);
        if let Some(slot) = decision.start {
            assert_eq!(slot, next);
            assert!(self.job.def.schedule.keeps(slot), "{}", self.tale());
            self.record(slot);
        }
        // A run by hand may live, and overlap has the slot skipped.
        let inserted = (inserted || late < 0) && decision.start.is_some();
        if inserted {
            self.lives = decision.start;
            self.runs += 1;
        }
        assert!(
            inserted || decision.next.is_none_or(|slot| slot > next),
            "{}",
            self.tale()
        );
        let left = self.job.runs_left();
        self.job = self
            .job
            .at_standing(self.job.standing_after(&decision, inserted));
        assert_eq!(
            self.job.runs_left(),
            left.map(|left| left - u32::from(inserted)),
            "{}",
            self.tale()
        );
        if left.is_some() && self.job.runs_left() == Some(0) {
            assert_eq!(self.job.state, JobState::Finished, "{}", self.tale());
        }
    }

    /// As a store does: a run that has not begun is marked to come back; one that has keeps the job at rest.
    fn change(&mut self, job: Job, skips: &[Skip], chance: i64) {
        self.write(skips);
        self.job = job;
        if self.lives.is_some() {
            self.marked = self.lives.is_some_and(|slot| slot.0 > self.now);
            self.job = self.job.resting();
            if chance % 3 == 0 {
                self.withdraw(false);
            }
        }
    }

    fn withdraw(&mut self, too_late: bool) {
        if !std::mem::take(&mut self.marked) || too_late {
            return;
        }
        if let Some(slot) = self.lives.take() {
            self.recorded.remove(&slot.0);
            self.runs -= 1;
            self.job = self.job.taken_back(slot, self.now, &[]);
        }
    }

    fn tale(&self) -> String {
        let schedule = &self.job.def.schedule;
        format!(
            "{} {:?}\n{}",
            schedule.words(),
            schedule.calendars,
            self.tale.join("\n")
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_job_that_rests_goes_on_and_loses_no_slot(
        seed: u64, ops in prop::collection::vec(op(), 1..30),
    ) {
        let mut life = Life::new(seed);
        for op in &ops {
            life.step(op);
        }
        life.withdraw(false);
        let overdue = life.job.next_slot.filter(|slot| slot.0 <= life.now);
        let (_, skips) = life.job.deleted(life.now, &node());
        life.write(&skips);
        if let Some(slot) = overdue {
            prop_assert!(life.recorded.contains(&slot.0), "{}", life.tale());
        }
    }
}

fn job(schedule: Schedule, now: &str) -> Job {
    let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    let id = JobId::new(at(now), [7; 10]);
    Job::new(id, TenantId::DEFAULT, None, def, at(now))
}

fn slot(text: &str) -> Option<Slot> {
    Some(Slot(at(text)))
}

#[test]
fn the_end_of_a_run_sets_the_next_slot() {
    let job = job(delay("10m"), "2026-11-02T08:00:00Z");
    assert_eq!(job.next_slot, slot("2026-11-02T08:10:00Z"));
    let next = job.next_slot.unwrap();
    let decision = job.decide(next, next.0, &node());
    let rests = job.at_standing(job.standing_after(&decision, true));
    assert!(rests.is_resting() && rests.state == JobState::Active);
    let goes_on = rests.rested(at("2026-11-02T08:33:20.500Z"));
    assert_eq!(goes_on.next_slot, slot("2026-11-02T08:43:20.500Z"));
    // Skipped by overlap, it goes on from the slot itself.
    let skipped = job.at_standing(job.standing_after(&decision, false));
    assert_eq!(skipped.next_slot, slot("2026-11-02T08:20:00Z"));
    // Only a job that rests is moved by the end of a run.
    assert_eq!(skipped.rested(at("2026-11-02T09:00:00Z")), skipped);
    // Taken back, it is due as it was.
    let back = rests.taken_back(next, at("2026-11-02T08:09:59Z"), &[]);
    assert_eq!(back.next_slot, Some(next));
}

#[test]
fn the_last_run_finishes_a_job_that_rests() {
    let mut ending = delay("10m");
    ending.bounds.runs_max = Some(1);
    let job = job(ending, "2026-11-02T08:00:00Z");
    let next = job.next_slot.unwrap();
    let decision = job.decide(next, next.0, &node());
    let spent = job.at_standing(job.standing_after(&decision, true));
    assert_eq!(
        (spent.state, spent.runs_left()),
        (JobState::Finished, Some(0))
    );
    assert_eq!(spent.rested(at("2026-11-02T09:00:00Z")), spent);
    let back = spent.taken_back(next, at("2026-11-02T08:09:59Z"), &[]);
    assert_eq!((back.state, back.runs_left()), (JobState::Active, Some(1)));
    assert_eq!(back.next_slot, Some(next));
    let skipped = job.at_standing(job.standing_after(&decision, false));
    assert_eq!(
        (skipped.state, skipped.runs_left()),
        (JobState::Active, Some(1))
    );
}

#[test]
fn a_slot_that_a_calendar_takes_meanwhile_waits_where_it_is() {
    let mut job = job(delay("10m"), "2026-11-02T08:00:00Z");
    let office = calendar("office", &["MON-FRI 08:00-16:00"]);
    let schedule = delay("10m").excluding(office);
    Arc::make_mut(&mut job.def).schedule = schedule;
    let next = job.next_slot.unwrap();
    let decision = job.decide(next, next.0, &node());
    assert_eq!((decision.start, decision.passed.len()), (None, 0));
    job.slot_last = Some(job.created_at);
    let stands = job.standing_after(&decision, false);
    assert_eq!(
        (stands.slot_last, stands.state),
        (job.slot_last, JobState::Active)
    );
    // Four in the afternoon in Berlin.
    assert_eq!(decision.next, slot("2026-11-02T15:00:00Z"));
    // It does not wait for a period more than calendars make it.
    let late = Slot(at("2026-11-02T14:55:00Z"));
    let decision = job.decide(late, late.0, &node());
    assert_eq!(decision.next, slot("2026-11-02T15:00:00Z"));
}
