//! The whole life of a job: whatever happens to it, each of its slots is accounted for once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::id::{JobId, TenantId};
use crate::job::Definition;
use crate::policy::CatchUp;
use crate::run::Run;
use crate::schedule::samples::{Chance, cron, every, random_calendars, random_schedule};
use crate::schedule::{Bounds, Schedule};
use crate::target::Target;

/// The clocks of Berlin go back a day later.
const BASE: i64 = 1_792_800_000;
const DAY: i64 = 86_400;

/// What may happen, each so many seconds after what happened before.
#[derive(Debug, Clone)]
enum Op {
    /// Its next slot is decided, `late` seconds after it is due, and makes a run unless another lives.
    Fire {
        late: i64,
        inserted: bool,
    },
    Pause {
        after: i64,
    },
    Resume {
        after: i64,
        catch_up: bool,
    },
    /// Another schedule, or only another timeout.
    Edit {
        after: i64,
        schedule: Option<u64>,
    },
    /// The calendars it names hold other times from now on.
    Swap {
        after: i64,
        calendars: u64,
    },
    /// And it is scheduled by them.
    Reschedule {
        after: i64,
    },
    /// It could not be planned.
    Park {
        after: i64,
    },
    /// Runs that are marked to come back do, or have left.
    Withdraw {
        too_late: bool,
    },
}

impl Op {
    fn shortened(&self) -> Self {
        let mut op = self.clone();
        match &mut op {
            Self::Fire { late, .. } => *late = (*late).min(*late % 25),
            Self::Pause { after }
            | Self::Resume { after, .. }
            | Self::Edit { after, .. }
            | Self::Swap { after, .. }
            | Self::Reschedule { after }
            | Self::Park { after } => *after %= 20,
            Self::Withdraw { .. } => {}
        }
        op
    }
}

/// Seconds from one event to the next: at once, within the lead of a slot, hours, or days.
fn a_while() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(0),
        0_i64..3,
        0_i64..900,
        0_i64..10 * 3_600,
        0_i64..9 * DAY
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let late = prop_oneof![
        4 => -2_i64..0,
        4 => 0_i64..=10,
        2 => 0_i64..3_600,
        1 => 0_i64..8 * DAY,
    ];
    prop_oneof![
        12 => (late, prop::bool::weighted(0.8)).prop_map(|(late, inserted)| Op::Fire { late, inserted }),
        2 => a_while().prop_map(|after| Op::Pause { after }),
        4 => (a_while(), any::<bool>())
            .prop_map(|(after, catch_up)| Op::Resume { after, catch_up }),
        4 => (a_while(), prop::option::of(any::<u64>()))
            .prop_map(|(after, schedule)| Op::Edit { after, schedule }),
        1 => (a_while(), any::<u64>())
            .prop_map(|(after, calendars)| Op::Swap { after, calendars }),
        1 => a_while().prop_map(|after| Op::Reschedule { after }),
        1 => a_while().prop_map(|after| Op::Park { after }),
        1 => any::<bool>().prop_map(|too_late| Op::Withdraw { too_late }),
    ]
}

/// What sort of schedules a life is made of.
#[derive(Debug, Clone, Copy)]
struct Sort {
    calendars: bool,
    runs_max: bool,
    /// Slots are seconds apart, and so is all that happens: several runs are made ahead.
    fast: bool,
}

impl Sort {
    fn schedule(self, seed: u64) -> Schedule {
        let mut chance = Chance(seed >> 1);
        if self.fast {
            let mut schedule = match chance.below(2) {
                0 => cron(chance.pick(&["* * * * * *", "*/3 * * * * *"]), "UTC"),
                _ => every(
                    chance.pick(&["1s", "2s", "5s"]),
                    "2026-01-01T00:00:00Z",
                    "UTC",
                ),
            };
            if self.calendars {
                schedule.calendars = random_calendars(&mut chance, BASE);
            }
            return schedule;
        }
        let around = BASE + 4 * DAY;
        let mut schedule = match chance.below(12) {
            0 => Schedule::from(Slot(second(BASE + chance.below(9 * DAY as u64) as i64))),
            _ => random_schedule(&mut chance, around),
        };
        let mut bound = |chances: u64| {
            let moment = BASE - 3 * DAY + chance.below(20 * DAY as u64) as i64;
            (chance.below(chances) == 0 && schedule.is_recurring()).then(|| second(moment))
        };
        schedule.bounds = Bounds {
            starts_at: bound(5),
            ends_at: bound(4),
            runs_max: None,
        };
        if self.runs_max {
            schedule.bounds.runs_max = Some(1 + chance.below(6) as u32);
        }
        if self.calendars {
            schedule.calendars = random_calendars(&mut chance, around);
        }
        schedule
    }

    fn definition(self, seed: u64) -> Definition {
        let mut chance = Chance(seed >> 2);
        let mut def = Definition::new(
            self.schedule(seed),
            Target::http("http://localhost/").unwrap(),
        );
        def.catch_up = CatchUp {
            policy: CatchUpPolicy::ALL[chance.below(3) as usize],
            window: Duration::from_secs([0, 600, 7_200, 90_000][chance.below(4) as usize]),
            max: 1 + chance.below(5) as u32,
        };
        if chance.below(4) == 0 {
            def.spread = Duration::from_secs(chance.below(300));
        }
        def
    }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn node() -> Arc<str> {
    Arc::from("node")
}

/// What became of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    slots: Vec<Timestamp>,
    /// None for a run.
    reason: Option<Reason>,
}

/// A schedule as long as it was the job's.
#[derive(Debug)]
struct Span {
    schedule: Schedule,
    from: Timestamp,
    to: Timestamp,
    /// Where the next one begins if no run of this one was made ahead of it.
    edited_at: Timestamp,
}

impl Span {
    fn tale(&self) -> String {
        let Self { from, to, .. } = self;
        format!(
            "{} (calendars {:?})\n    from {from} to {to}",
            self.schedule.words(),
            self.schedule.calendars
        )
    }
}

struct Life {
    sort: Sort,
    job: Job,
    now: Timestamp,
    entries: Vec<Entry>,
    spans: Vec<Span>,
    /// Runs that are marked to come back.
    marked: Vec<Slot>,
    story: Vec<String>,
}

impl Life {
    fn new(sort: Sort, seed: u64) -> Self {
        // When it is fast, calendars come to an edge soon.
        let now = second(if sort.fast { BASE + 880 } else { BASE });
        let id = JobId::new(now, [7; 10]);
        let job = Job::new(id, TenantId::DEFAULT, None, sort.definition(seed), now);
        let mut life = Self {
            sort,
            job,
            now,
            entries: Vec::new(),
            spans: Vec::new(),
            marked: Vec::new(),
            story: Vec::new(),
        };
        // A one-off that lies in the past is due.
        let from = if life.job.def.schedule.is_recurring() {
            now
        } else {
            Timestamp::MIN
        };
        life.open(from);
        life
    }

    fn open(&mut self, from: Timestamp) {
        let schedule = self.job.def.schedule.clone();
        self.spans.push(Span {
            schedule,
            from,
            to: Timestamp::MAX,
            edited_at: self.now,
        });
        self.close_if_finished();
    }

    fn close_if_finished(&mut self) {
        if self.job.state == JobState::Finished {
            let end = self.decided().max(self.now);
            let spent = self.job.runs_left() == Some(0);
            let end = if spent { self.decided() } else { end };
            let span = self.spans.last_mut().unwrap();
            span.to = span.to.min(end.max(span.from));
        }
    }

    /// The last slot of which something has become.
    fn decided(&self) -> Timestamp {
        let all = self.entries.iter().flat_map(|entry| &entry.slots);
        all.max().copied().unwrap_or(Timestamp::MIN)
    }

    fn step(&mut self, op: &Op) {
        if self.sort.fast {
            return self.step_by(&op.shortened());
        }
        self.step_by(op);
    }

    fn step_by(&mut self, op: &Op) {
        match op {
            Op::Fire { late, inserted } => self.fire(*late, *inserted),
            Op::Pause { after } => {
                self.wait(*after);
                if self.job.state == JobState::Active {
                    let (job, skips) = self.job.paused(self.now, None, &node());
                    self.change(job, skips, *after);
                }
            }
            Op::Resume { after, catch_up } => {
                self.wait(*after);
                if self.job.state == JobState::Paused {
                    let (job, skips) = self.job.resumed(self.now, *catch_up, &node());
                    self.change(job, skips, *after);
                    self.close_if_finished();
                }
            }
            Op::Edit { after, schedule } => self.edit(*after, *schedule),
            Op::Swap { after, calendars } => {
                self.wait(*after);
                if self.sort.calendars {
                    let mut chance = Chance(calendars >> 1);
                    let mut calendars = random_calendars(&mut chance, BASE + 4 * DAY);
                    let all = calendars.exclude.iter_mut().chain(&mut calendars.only);
                    all.for_each(|it| Arc::make_mut(it).updated_at = self.now);
                    // One that goes by none at all is never touched by this.
                    if !self.job.def.schedule.calendars.is_empty() && !calendars.is_empty() {
                        let def = Arc::make_mut(&mut self.job.def);
                        def.schedule.calendars = calendars;
                    }
                }
            }
            Op::Reschedule { after } => {
                self.wait(*after);
                let (job, skips) = self.job.rescheduled(self.now, &node());
                self.change(job, skips, *after);
                self.close_if_finished();
            }
            Op::Park { after } => {
                self.wait(*after);
                if self.job.state == JobState::Active {
                    self.job = self.job.invalid(self.now, "no reason".to_owned());
                }
            }
            Op::Withdraw { too_late } => self.withdraw(*too_late),
        }
        self.story.push(format!(
            "{} {op:?}: {:?} next {:?} last {:?}",
            self.now, self.job.state, self.job.next_slot, self.job.slot_last
        ));
    }

    /// Nobody else changes the job before the last change is confirmed.
    fn wait(&mut self, seconds: i64) {
        self.withdraw(seconds % 2 == 0);
        self.now = self.now.plus(Duration::from_secs(seconds as u64));
    }

    fn fire(&mut self, late: i64, inserted: bool) {
        let Some(next) = self.job.next_slot else {
            return;
        };
        // Calendars may leave out years.
        let far = if self.sort.fast { 7_200 } else { 60 * DAY };
        if next.0 > second(BASE + far) {
            return;
        }
        // Whoever holds a run answers long before the next one is due.
        self.withdraw(late % 2 == 0);
        let Some(next) = self.job.next_slot else {
            return;
        };
        let due = self.job.due_at(next).as_millis() + late * 1_000;
        self.now = self.now.max(Timestamp::from_millis(due));
        let mut decision = self.job.decide(next, self.now, &node());
        if late % 5 == 3 {
            decision = decision.over_quota();
        }
        self.write(&decision.passed);
        // Ahead of its time it is fired only if nothing else lives.
        let mut inserted = (inserted || late < 0) && decision.start.is_some();
        if let Some(slot) = decision.start {
            let schedule = &self.job.def.schedule;
            assert!(schedule.keeps(slot), "{}", self.tale());
            let changed_at = schedule.calendars.changed_at();
            assert!(slot >= next || Some(slot.0) > changed_at, "{}", self.tale());
            // The store knows the slot of an edited job that ran before the edit.
            let known = self.entries.iter().any(|entry| entry.slots == [slot.0]);
            inserted &= !known;
            if !known {
                self.entries.push(Entry {
                    slots: vec![slot.0],
                    reason: (!inserted).then_some(Reason::Overlap),
                });
            }
        }
        let moves = decision.slot_last() > self.job.slot_last || decision.next != Some(next);
        assert!(moves, "{}", self.tale());
        assert!(
            decision.next.map(|slot| slot.0) > decision.slot_last() || decision.next.is_none(),
            "{}",
            self.tale()
        );
        self.job = self
            .job
            .at_standing(self.job.standing_after(&decision, inserted));
        self.close_if_finished();
    }

    fn edit(&mut self, after: i64, schedule: Option<u64>) {
        self.wait(after);
        let def = match schedule {
            Some(seed) => self.sort.definition(seed),
            None => Definition {
                timeout: Duration::from_secs(1),
                ..Definition::clone(&self.job.def)
            },
        };
        let was = self.job.state;
        let same = def.schedule == self.job.def.schedule;
        let (job, skips) = self.job.edited(None, def, self.now, &node());
        self.change(job, skips, after);
        if was == JobState::Finished || !same {
            let end = self.decided().max(self.now);
            let span = self.spans.last_mut().unwrap();
            span.to = span.to.min(end);
            let recurring = self.job.def.schedule.is_recurring();
            // A one-off that lies in the past is due, unless something later was decided.
            let last = self.job.slot_last.unwrap_or(Timestamp::MIN);
            let from = if recurring { end } else { last };
            self.open(from);
        } else {
            self.close_if_finished();
        }
    }

    /// Writes what a change explains; runs of slots after it are marked to come back.
    fn change(&mut self, job: Job, skips: Vec<Skip>, chance: i64) {
        self.write(&skips);
        self.job = job;
        let now = self.now;
        let ahead = self.entries.iter().filter(|entry| entry.reason.is_none());
        let ahead = ahead.flat_map(|entry| &entry.slots).map(|at| Slot(*at));
        self.marked = ahead.filter(|slot| slot.0 > now).collect();
        if chance % 3 == 0 {
            self.withdraw(false);
        }
    }

    fn withdraw(&mut self, too_late: bool) {
        let marked = std::mem::take(&mut self.marked);
        // What calendars left out within the last seconds before a run that comes back is recorded twice.
        let too_late = too_late || (self.sort.fast && self.sort.calendars);
        for slot in marked.into_iter().filter(|_| !too_late) {
            self.entries.retain(|entry| entry.slots != [slot.0]);
            let ran = self.ran_before(slot);
            self.job = self.job.taken_back(slot, self.now, &ran);
            let edited_at = self.spans.last().map(|span| span.edited_at).unwrap();
            if let [.., before, last] = self.spans.as_mut_slice()
                && (edited_at..last.from).contains(&slot.0.minus(MILLISECOND))
            {
                // What the old schedule made ahead of the edit is gone: the new one begins there.
                before.to = before.to.min(edited_at);
                last.from = edited_at;
            }
            if self.job.state != JobState::Finished {
                self.spans.last_mut().unwrap().to = Timestamp::MAX;
            }
        }
    }

    /// Slots with a run that a run taken back must not have decided again.
    fn ran_before(&self, slot: Slot) -> Vec<Slot> {
        let decided = self.job.decided_before(slot);
        let runs = self.entries.iter().filter(|entry| entry.reason.is_none());
        let slots = runs.flat_map(|entry| &entry.slots).copied();
        let mut ran: Vec<Slot> = slots
            .filter(|ran| decided < *ran && *ran < slot.0)
            .map(Slot)
            .collect();
        ran.sort();
        ran
    }

    /// The slots that have a run.
    fn ran(&self) -> Vec<Slot> {
        let ran = self.entries.iter().filter(|entry| entry.reason.is_none());
        let mut ran: Vec<Slot> = ran.flat_map(|it| &it.slots).map(|at| Slot(*at)).collect();
        ran.sort();
        ran
    }

    /// Expands what was written into slots, and looks at each.
    fn write(&mut self, skips: &[Skip]) {
        let schedule = self.job.def.schedule.clone();
        let zone = schedule.zone();
        let changed_at = schedule.calendars.changed_at();
        // The next slot was the first they kept: what lies before it and before the change was left out.
        let next = self.job.next_slot.map(|slot| slot.0);
        let gone = |slot: &Timestamp| Some(*slot) <= changed_at && Some(*slot) < next;
        for (place, skip) in skips.iter().enumerate() {
            let Stretch { first, last, count } = skip.slots;
            let before = first.0.minus(MILLISECOND);
            let slots = std::iter::successors(schedule.next_after(before), |slot| {
                schedule.next_after(slot.0)
            });
            let slots: Vec<Timestamp> = slots
                .map(|slot| slot.0)
                .take_while(|slot| *slot <= last.0)
                .collect();
            assert_eq!(slots.first(), Some(&first.0), "{skip:?} {}", self.tale());
            assert_eq!(slots.last(), Some(&last.0), "{skip:?} {}", self.tale());
            assert_eq!(slots.len() as u64, count, "{skip:?} {}", self.tale());
            for slot in &slots {
                let by = schedule.calendars.exclusion(Slot(*slot), &zone).by;
                let fits = match skip.reason {
                    Reason::Calendar => by == skip.note || Some(*slot) <= changed_at,
                    Reason::Missed | Reason::JobDeleted => {
                        (by.is_none() && !gone(slot)) || place >= limits::SKIPS_MAX
                    }
                    Reason::Paused | Reason::Invalid => true,
                    Reason::Overlap
                    | Reason::Overload
                    | Reason::QueueFull
                    | Reason::AttemptsSpent
                    | Reason::Refused
                    | Reason::Lost
                    | Reason::Poison
                    | Reason::Requested
                    | Reason::Replaced
                    | Reason::Unreadable => false,
                    Reason::Quota => by.is_none() && slots.len() == 1,
                };
                assert!(fits, "{slot} by {by:?} in {skip:?} {}", self.tale());
            }
            let days = 86_400_000;
            let (first, last) = (first.0.as_millis() / days, last.0.as_millis() / days);
            assert!(first == last, "{skip:?} {}", self.tale());
            self.push_free(&schedule, skip);
        }
    }

    /// Writes an entry as stores do: around the slots that have a run.
    fn push_free(&mut self, schedule: &Schedule, skip: &Skip) {
        let entry = Run::skipped(&self.job, skip, self.now);
        for entry in entry.around(schedule, &self.ran()) {
            let slots = entry.stretch.or(entry.slot.map(Stretch::one)).unwrap();
            let all = std::iter::successors(Some(slots.first), |slot| schedule.next_after(slot.0));
            let slots: Vec<Timestamp> = all
                .take(slots.count as usize)
                .inspect(|slot| assert!(*slot <= slots.last))
                .map(|slot| slot.0)
                .collect();
            self.entries.push(Entry {
                slots,
                reason: Some(skip.reason),
            });
        }
    }

    fn tale(&self) -> String {
        format!(
            "{}\n{:?} {:?}\nnow {}, {:?}, version {:?}, next {:?}, last {:?}, {:?} runs left\n{}",
            self.spans
                .iter()
                .map(Span::tale)
                .collect::<Vec<_>>()
                .join("\n"),
            self.job.def.catch_up,
            self.job.def.spread,
            self.now,
            self.job.state,
            self.job.version,
            self.job.next_slot,
            self.job.slot_last,
            self.job.runs_left(),
            self.story.join("\n")
        )
    }

    /// Deletes the job, and looks for slots that nobody knows of, or that two entries record.
    fn end(mut self, drained: bool) {
        self.withdraw(false);
        for _ in 0..20_000 {
            let overdue = self.job.next_slot.is_some_and(|slot| slot.0 <= self.now);
            if !drained || !overdue {
                break;
            }
            self.fire(0, true);
        }
        let (job, skips) = self.job.deleted(self.now, &node());
        self.write(&skips);
        self.job = job;
        let until = self.now;
        let mut recorded: BTreeMap<Timestamp, Vec<Option<Reason>>> = BTreeMap::new();
        for entry in &self.entries {
            for slot in &entry.slots {
                recorded.entry(*slot).or_default().push(entry.reason);
            }
        }
        for span in &self.spans {
            let next = |after| span.schedule.next_after(after);
            let slots = std::iter::successors(next(span.from), |slot| next(slot.0));
            let end = span.to.min(until.max(self.decided()));
            for slot in slots.take_while(|slot| slot.0 <= end) {
                let found = recorded.remove(&slot.0).unwrap_or_default();
                // What was made ahead of the end and then taken back is no longer due.
                if found.is_empty() && slot.0 > until {
                    continue;
                }
                assert_eq!(found.len(), 1, "{slot} is {found:?}\n{}", self.tale());
            }
        }
        assert!(recorded.is_empty(), "{recorded:?}\n{}", self.tale());
    }
}

fn live(sort: Sort, seed: u64, ops: &[Op], drained: bool) {
    let mut life = Life::new(sort, seed);
    for op in ops {
        life.step(op);
    }
    life.end(drained);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_slot_is_accounted_for_once(
        seed: u64, drained: bool, ops in prop::collection::vec(op(), 1..25),
    ) {
        live(Sort { calendars: false, runs_max: false, fast: false }, seed, &ops, drained);
    }

    #[test]
    fn every_slot_is_accounted_for_once_with_calendars(
        seed: u64, drained: bool, ops in prop::collection::vec(op(), 1..25),
    ) {
        live(Sort { calendars: true, runs_max: false, fast: false }, seed, &ops, drained);
    }

    #[test]
    fn every_slot_of_a_fast_job_is_accounted_for_once(
        seed: u64, drained: bool, calendars: bool, ops in prop::collection::vec(op(), 1..25),
    ) {
        live(Sort { calendars, runs_max: false, fast: true }, seed, &ops, drained);
    }

    #[test]
    fn every_slot_is_accounted_for_once_with_a_bound_on_runs(
        seed: u64, drained: bool, calendars: bool, ops in prop::collection::vec(op(), 1..25),
    ) {
        live(Sort { calendars, runs_max: true, fast: false }, seed, &ops, drained);
    }
}
