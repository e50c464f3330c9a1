//! Lives of jobs, computed by the model alone: whatever happens, every slot is listed once.

use std::collections::BTreeMap;

use model::job::Definition;
use model::schedule::{Bounds, CronOptions, Every, Weekly};
use model::{Calendar, CalendarName, Run, RunState, Schedule, Skip, Target};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

const BASE: i64 = 1_772_600_000_000;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(BASE + secs * 1_000)
}

fn cron(text: &str) -> Schedule {
    Schedule::parse_text(text, CronOptions::default(), at(0)).unwrap()
}

fn me() -> Arc<str> {
    Arc::from("node")
}

/// A job and all that was written about its slots.
struct Life {
    job: Job,
    written: BTreeMap<Slot, Run>,
    now: Timestamp,
}

impl Life {
    fn of(schedule: Schedule) -> Self {
        let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
        let id = JobId::new(at(0), [1; 10]);
        Self {
            job: Job::new(id, TenantId::DEFAULT, None, def, at(0)),
            written: BTreeMap::new(),
            now: at(0),
        }
    }

    fn write(&mut self, run: Run) {
        let slot = run.slot.unwrap();
        let before = self.written.insert(slot, run);
        assert_eq!(before, None, "a slot was decided twice");
    }

    fn skip(&mut self, skips: &[Skip]) {
        for skip in skips {
            self.write(Run::skipped(&self.job, skip, self.now));
        }
    }

    fn change(&mut self, (job, skips): (Job, Vec<Skip>)) {
        self.job = job;
        self.skip(&skips);
    }

    /// Decides everything that is due; `overlap` says whether another run is alive.
    fn fire(&mut self, overlap: bool) {
        while let Some(slot) = self.job.next_slot {
            if self.job.state != JobState::Active || self.job.due_at(slot) > self.now {
                return;
            }
            let decision = self.job.decide(slot, self.now, &me());
            self.skip(&decision.passed);
            if let Some(slot) = decision.start {
                let mut run = Run::of_slot(&self.job, slot);
                run.state = RunState::Succeeded;
                if overlap {
                    (run.state, run.reason) = (RunState::Skipped, Some(Reason::Overlap));
                }
                self.write(run);
            }
            let inserted = decision.start.is_some() && !overlap;
            self.job = self
                .job
                .at_standing(self.job.standing_after(&decision, inserted));
        }
    }

    fn list_slots(&self, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Run> {
        let covers = |run: &&Run| run.stretch.is_some_and(|it| it.last.0 >= from);
        let begun = self.written.range(..Slot(from)).next_back();
        let begun = begun.map(|(_, run)| run).filter(covers);
        let within = self.written.range(Slot(from)..Slot(to));
        let all = begun.into_iter().chain(within.map(|(_, run)| run));
        all.take(limit).cloned().collect()
    }

    fn written(&self, range: &Range) -> Written {
        let mut written = Written::default();
        while let Some((from, limit)) = written.wanted(range) {
            written.add(self.list_slots(from, range.to, limit), limit);
        }
        written
    }

    fn page(&self, range: Range) -> SlotPage {
        let view = View {
            job: &self.job,
            range,
            now: self.now,
            history_from: Timestamp::MIN,
        };
        let (page, moved) = view.page(self.written(&range));
        assert!(!moved, "{:?}", page.entries);
        page
    }

    /// All pages of a range.
    fn list(&self, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Entry> {
        let mut range = Range {
            from,
            to,
            cursor: None,
            limit,
        };
        let mut all = Vec::new();
        loop {
            let page = self.page(range);
            assert!(page.entries.len() <= limit);
            all.extend(page.entries);
            if page.next.is_none() {
                return all;
            }
            assert!(page.next > range.cursor, "it goes on");
            range.cursor = page.next;
        }
    }

    fn recorded(&self, from: i64, to: i64) -> Vec<String> {
        let entries = self.list(at(from), at(to), 3);
        entries.iter().map(describe).collect()
    }
}

fn describe(entry: &Entry) -> String {
    let secs = |slot: Slot| (slot.0.as_millis() - BASE) / 1_000;
    let Stretch { first, last, count } = entry.slots;
    let fate = match &entry.fate {
        Fate::Ran(_) => "ran".to_owned(),
        Fate::Skipped(why) => match &why.note {
            Some(note) => format!("{} {note}", why.reason.as_str()),
            None => why.reason.as_str().to_owned(),
        },
        Fate::Planned { overdue: true } => "overdue".to_owned(),
        Fate::Planned { overdue: false } => "planned".to_owned(),
        Fate::Unknown => "unknown".to_owned(),
    };
    match count {
        1 => format!("{} {fate}", secs(first)),
        _ => format!("{}-{} x{count} {fate}", secs(first), secs(last)),
    }
}

fn minutely() -> Schedule {
    let every = Every::parse("1m", at(0), model::schedule::Zone::utc());
    Schedule::from(every.unwrap())
}

fn weekends() -> Arc<Calendar> {
    calendar("weekends", "SAT-SUN")
}

fn calendar(name: &str, weekly: &str) -> Arc<Calendar> {
    let mut calendar = Calendar::new(CalendarName::new(name).unwrap(), at(0));
    calendar.weekly.push(Weekly::parse(weekly).unwrap());
    Arc::new(calendar)
}

#[test]
fn a_day_in_the_life_of_a_job_is_accounted_for() {
    let mut life = Life::of(minutely());
    life.now = at(60);
    life.fire(false);
    life.now = at(120);
    life.fire(true);
    // A node that was away for a while.
    life.now = at(400);
    life.fire(false);
    let mut paused = life.job.paused(at(410), Some("rain".to_owned()), &me());
    life.now = at(410);
    life.change(paused);
    life.now = at(560);
    assert_eq!(
        life.recorded(0, 700),
        [
            "60 ran",
            "120 overlap",
            "180-300 x3 missed",
            "360 ran",
            "420-540 x3 paused rain",
            "600-660 x2 paused rain",
        ]
    );
    assert_eq!(life.recorded(430, 500), ["420-540 x3 paused rain"]);
    life.change(life.job.resumed(at(560), false, &me()));
    life.now = at(605);
    assert_eq!(
        life.recorded(400, 700),
        ["420-540 x3 paused rain", "600 overdue", "660 planned"]
    );
    paused = life.job.deleted(at(605), &me());
    life.change(paused);
    assert_eq!(life.recorded(600, 700), ["600 job_deleted"]);
    assert_eq!(life.recorded(700, 7_000), [""; 0]);
}

#[test]
fn what_calendars_leave_out_is_shown_before_and_after_it_is_written() {
    let mut schedule = minutely();
    // 1772600000 is a Wednesday, 04:53:20 UTC.
    schedule.calendars.exclude = vec![calendar("early", "WED 04:55-04:58")];
    let mut life = Life::of(schedule);
    let before = ["60 planned", "120-240 x3 calendar early", "300 planned"];
    assert_eq!(life.recorded(0, 360), before);
    life.now = at(60);
    life.fire(false);
    life.now = at(200);
    let meanwhile = ["60 ran", "120-240 x3 calendar early", "300 planned"];
    assert_eq!(life.recorded(0, 360), meanwhile);
    assert_eq!(life.recorded(130, 200), ["180 calendar early"]);
    life.now = at(305);
    let late = ["60 ran", "120-240 x3 calendar early", "300 overdue"];
    assert_eq!(life.recorded(0, 360), late);
    life.fire(false);
    let after = ["60 ran", "120-240 x3 calendar early", "300 ran"];
    assert_eq!(life.recorded(0, 360), after);
    assert_eq!(life.recorded(130, 200), ["120-240 x3 calendar early"]);
}

#[test]
fn only_as_many_slots_are_planned_as_runs_are_left() {
    let mut schedule = minutely();
    schedule.bounds = Bounds {
        runs_max: Some(3),
        ..Bounds::default()
    };
    let mut life = Life::of(schedule);
    assert_eq!(
        life.recorded(0, 600),
        ["60 planned", "120 planned", "180 planned"]
    );
    assert_eq!(life.recorded(150, 600), ["180 planned"]);
    life.now = at(60);
    life.fire(true);
    assert_eq!(life.recorded(200, 600), ["240 planned"]);
    for secs in [120, 180, 240, 300] {
        life.now = at(secs);
        life.fire(false);
    }
    assert_eq!(life.job.state, JobState::Finished);
    assert_eq!(
        life.recorded(0, 600),
        ["60 overlap", "120 ran", "180 ran", "240 ran"]
    );
}

#[test]
fn a_job_that_rests_has_no_slot_to_come() {
    let every = Every::parse("1m", at(0), model::schedule::Zone::utc());
    let mut life = Life::of(Schedule::from(every.unwrap().after_completion()));
    assert_eq!(life.recorded(0, 600), ["60 planned"]);
    life.now = at(60);
    life.fire(false);
    assert_eq!(life.recorded(0, 600), ["60 ran"]);
    life.job = life.job.rested(at(75));
    assert_eq!(life.recorded(0, 600), ["60 ran", "135 planned"]);
    life.change(life.job.paused(at(80), None, &me()));
    assert_eq!(life.recorded(0, 600), ["60 ran"]);
}

#[test]
fn an_invalid_job_lets_its_slots_pass() {
    let mut life = Life::of(minutely());
    life.now = at(70);
    life.fire(false);
    life.job = life.job.invalid(at(80), "the zone is gone".to_owned());
    life.now = at(200);
    let reason = "invalid the zone is gone";
    let expected = [
        "60 ran".to_owned(),
        format!("120-180 x2 {reason}"),
        format!("240-300 x2 {reason}"),
    ];
    assert_eq!(life.recorded(0, 330), expected);
}

#[test]
fn a_slot_that_nobody_decided_is_not_left_out() {
    let mut life = Life::of(minutely());
    for secs in [60, 120, 180, 240, 300] {
        life.now = at(secs);
        life.fire(false);
    }
    life.written.remove(&Slot(at(120)));
    life.written.remove(&Slot(at(240)));
    life.written.remove(&Slot(at(300)));
    let range = Range {
        from: at(0),
        to: at(400),
        cursor: None,
        limit: 10,
    };
    let view = View {
        job: &life.job,
        range,
        now: life.now,
        history_from: Timestamp::MIN,
    };
    let (page, moved) = view.page(life.written(&range));
    let recorded: Vec<String> = page.entries.iter().map(describe).collect();
    let expected = [
        "60 ran",
        "120 unknown",
        "180 ran",
        "240-300 x2 unknown",
        "360 planned",
    ];
    assert_eq!(recorded, expected);
    assert!(moved, "it is read again before it is listed");
    let kept = View {
        history_from: at(200),
        ..view
    };
    let (page, _) = kept.page(life.written(&range));
    let recorded: Vec<String> = page.entries.iter().map(describe).collect();
    assert_eq!(
        recorded,
        ["60 ran", "180 ran", "240-300 x2 unknown", "360 planned"]
    );
}

#[test]
fn what_was_decided_after_the_job_was_read_is_shown_once() {
    let mut life = Life::of(minutely());
    let read = life.job.clone();
    life.now = at(60);
    life.fire(false);
    life.job = read;
    assert_eq!(life.recorded(0, 150), ["60 ran", "120 planned"]);
}

#[test]
fn a_year_of_seconds_is_shown_page_by_page() {
    let mut life = Life::of(cron("* * * * * *"));
    life.job.def = Arc::new(Definition {
        schedule: Schedule {
            calendars: model::schedule::Calendars {
                exclude: vec![weekends()],
                only: Vec::new(),
            },
            ..life.job.def.schedule.clone()
        },
        ..Definition::clone(&life.job.def)
    });
    let range = Range {
        from: at(0),
        to: at(366 * 86_400),
        cursor: None,
        limit: 1_000,
    };
    let page = life.page(range);
    assert_eq!(page.entries.len(), 1_000);
    assert_eq!(page.next, Some(Slot(at(1_001))));
    let far = life.page(Range {
        cursor: Some(Slot(at(300 * 86_400))),
        ..range
    });
    assert_eq!(far.entries.len(), 1_000);
    let (from, to) = (at(0), at(86_400));
    let day = life.list(from, to, 997);
    assert_eq!(day.len(), 86_399);
    let slots = day.iter().map(|entry| entry.slots.first);
    assert!(slots.eq((1..86_400).map(|secs| Slot(at(secs)))));
}

/// Every slot of the schedule is covered by one entry, and entries are in order.
fn check(life: &Life, from: Timestamp, to: Timestamp, limit: usize) {
    let entries = life.list(from, to, limit);
    let schedule = &life.job.def.schedule;
    let next = |slot: &Slot| schedule.next_after(slot.0);
    let after = from.minus(MILLISECOND).max(at(0));
    let nominal = std::iter::successors(schedule.next_after(after), next);
    let nominal: Vec<Slot> = nominal.take_while(|slot| slot.0 < to).collect();
    let mut recorded = Vec::new();
    for entry in &entries {
        assert_ne!(entry.fate, Fate::Unknown, "{}", describe(entry));
        let Stretch { first, last, count } = entry.slots;
        let slots = std::iter::successors(Some(first), next);
        let slots: Vec<Slot> = slots.take_while(|slot| *slot <= last).collect();
        assert_eq!(slots.len() as u64, count, "{}", describe(entry));
        recorded.extend(
            slots
                .into_iter()
                .filter(|slot| slot.0 >= from && slot.0 < to),
        );
    }
    if let Some(left) = life.job.runs_left() {
        let coming = entries
            .iter()
            .filter(|it| matches!(it.fate, Fate::Planned { .. }));
        assert!(coming.count() <= left as usize);
        assert!(nominal.starts_with(&recorded), "{recorded:?}");
    } else {
        assert_eq!(
            recorded,
            nominal,
            "{:?}",
            entries.iter().map(describe).collect::<Vec<_>>()
        );
    }
}

#[test]
fn whatever_happens_every_slot_is_shown_once() {
    for seed in 0..150 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut schedule = match seed % 3 {
            0 => minutely(),
            1 => cron("*/2 * * * *"),
            _ => cron("0 0 * * * *"),
        };
        if random.random_bool(0.5) {
            schedule.calendars.exclude = vec![weekends(), calendar("noon", "WED-THU 11:00-13:30")];
        }
        if random.random_bool(0.2) {
            schedule.bounds.runs_max = Some(random.random_range(1..50));
        }
        let mut life = Life::of(schedule);
        for _ in 0..random.random_range(1..30) {
            let pause = match random.random_range(0..4) {
                0 => random.random_range(1..3 * 86_400),
                1 => random.random_range(1..7_200),
                _ => random.random_range(1..200),
            };
            life.now = life.now.plus(Duration::from_secs(pause));
            let (now, me) = (life.now, me());
            match (random.random_range(0..8), life.job.state) {
                (0, JobState::Active) => life.change(life.job.paused(now, None, &me)),
                (0 | 1, JobState::Paused) => {
                    let catch_up = random.random_bool(0.3);
                    life.change(life.job.resumed(now, catch_up, &me));
                }
                (2, JobState::Active) => life.change(life.job.rescheduled(now, &me)),
                (3, JobState::Active | JobState::Paused) => {
                    let mut def = Definition::clone(&life.job.def);
                    def.timeout += Duration::from_secs(1);
                    life.change(life.job.edited(None, def, now, &me));
                }
                _ => life.fire(random.random_bool(0.2)),
            }
            let now = random
                .random_range(0..=life.now.plus(Duration::from_secs(1)).since(at(0)).as_secs());
            let from = at(now as i64 - 3_600);
            let to = from.plus(Duration::from_secs(random.random_range(1..100_000)));
            check(&life, from, to, random.random_range(1..60));
        }
    }
}

// Pages of what grows between them, and of what is kept in pieces.
#[path = "slots_pages_tests.rs"]
mod pages;
