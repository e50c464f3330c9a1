//! What goes wrong: in bursts, each of which ends with a blow that nobody softens, and then peace.

use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::Clock;
use model::schedule::other_tables;
use model::{Job, limits};
use rand::RngExt;

use crate::faults::{Badness, Cut, DUTIES_PANIC};
use crate::origins::{ADDRESSES, Dead};
use crate::spells::Ill;
use crate::world::{BURST, World};

/// By then a write has arrived, or never will, that was on its way when its node was gone.
const ON_ITS_WAY: Duration = Duration::from_secs(12);
/// How long everyone may take to learn that the store's clock was stepped.
const STEP_HEARD: Duration = Duration::from_secs(3);

impl World {
    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(from..to))
    }

    pub(crate) async fn go_wrong(&mut self) {
        let end = self.clock.uptime() + self.plan.trouble;
        while self.clock.uptime() < end {
            let burst = if self.plan.is_long() {
                self.millis(15_000, BURST.as_millis() as u64)
            } else {
                self.plan.trouble
            };
            let until = (self.clock.uptime() + burst).min(end);
            while self.clock.uptime() < until {
                let wait = self.millis(1, 3_000);
                self.clock.sleep(wait).await;
                self.come_back().await;
                self.trouble().await;
            }
            if self.rng.random_bool(0.7) {
                self.calm();
            }
            self.blow().await;
            let peace = if self.plan.is_long() {
                self.millis(20_000, 200_000)
            } else {
                Duration::from_secs(12)
            };
            self.clock.sleep(peace).await;
        }
    }

    /// Everything is well again.
    pub(crate) async fn come_right(&mut self) {
        let until = self.members.iter().map(|member| member.away_until).max();
        let left = until
            .unwrap_or_default()
            .saturating_sub(self.clock.uptime());
        self.clock.sleep(left).await;
        self.calm();
        self.origins.come_back(self.clock.uptime());
        for index in 0..self.members.len() {
            if self.members[index].node.is_none() {
                self.start(index).await;
            }
        }
    }

    /// Ways to the store are good again, and clocks no worse than usual.
    fn calm(&mut self) {
        let now = self.clock.uptime();
        for (index, member) in self.members.iter().enumerate() {
            member.store.spoil(Badness::default());
            let skew = member.clock.skew.load(Ordering::SeqCst);
            member.clock.skew.store(skew % 30_000, Ordering::SeqCst);
            self.spells.calm(index, now);
        }
    }

    /// Nodes that crashed a while ago are started.
    async fn come_back(&mut self) {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            if member.node.is_none() && member.back_at <= self.clock.uptime() {
                self.start(index).await;
            }
        }
    }

    /// One node is gone for a while; the others are left in peace to take over.
    async fn blow(&mut self) {
        self.come_back().await;
        let index = self.rng.random_range(0..self.members.len());
        match self.rng.random_range(0..10) {
            0..4 => self.crash(index),
            4..6 if self.is_fleet() => self.cut(index, true),
            6..8 if self.is_fleet() => self.suspend(index).await,
            _ => {
                // Nothing, and after a while somebody leaves in good order.
                let wait = self.millis(10_000, 20_000);
                self.clock.sleep(wait).await;
                self.stop(index).await;
            }
        }
        let wait = self.millis(6_000, 20_000);
        self.clock.sleep(wait).await;
        self.come_back().await;
    }

    /// One thing goes wrong, or somebody does something.
    async fn trouble(&mut self) {
        let index = self.rng.random_range(0..self.members.len());
        match self.rng.random_range(0..100) {
            0..13 => {
                if self.rng.random_bool(0.25) {
                    self.change_delivery().await;
                }
                self.crash(index);
            }
            13..18 => self.stop(index).await,
            18..32 => self.spoil(index),
            32..40 => {
                let silent = self.rng.random_bool(0.5);
                self.cut(index, silent);
            }
            40..42 => {
                let most = [3_000, 12_000][self.rng.random_range(0..2)];
                let span = self.millis(200, most);
                self.outage(span);
            }
            42..47 => self.step(),
            47..60 => self.create().await,
            60..80 => self.meddle(index).await,
            80..93 if self.is_fleet() => self.suspend(index).await,
            93..96 if self.is_fleet() => self.skew(index),
            96..99 => self.let_die(),
            99 => self.change_tables().await,
            _ => {}
        }
    }

    fn crash(&mut self, index: usize) {
        // Now and then for longer than whoever reports is silent; for minutes, where there is time.
        let most = match self.rng.random_range(0..10) {
            0 if self.plan.is_long() => 240_000,
            1 => 30_000,
            _ => 15_000,
        };
        let away = self.millis(0, most);
        let now = self.clock.uptime();
        let member = &mut self.members[index];
        if let Some(node) = member.node.take() {
            self.doors.close(index);
            node.crash();
            member.back_at = now + away;
            self.spells.begin(index, Ill::Down, now, None);
            self.note(|| format!("node {index} crashes"));
        }
    }

    /// Stops in good order, and starts again at once or later.
    async fn stop(&mut self, index: usize) {
        let away = self.millis(0, 10_000) * u32::from(self.rng.random_bool(0.5));
        if self.leave(index, away).await && away.is_zero() {
            self.start(index).await;
        }
    }

    /// Stops in good order for a while, if it runs.
    async fn leave(&mut self, index: usize, away: Duration) -> bool {
        let Some(node) = self.members[index].node.take() else {
            return false;
        };
        self.doors.close(index);
        let now = self.clock.uptime();
        self.spells.begin(index, Ill::Leaving, now, None);
        self.note(|| format!("node {index} stops"));
        node.stop(Duration::from_secs(1)).await;
        self.members[index].back_at = self.clock.uptime() + away;
        true
    }

    /// Everyone stops, or crashes, and comes back as another release with other tables of time zones.
    async fn change_tables(&mut self) {
        for index in 0..self.members.len() {
            if self.rng.random_bool(0.3) {
                self.crash(index);
            } else {
                self.leave(index, ON_ITS_WAY).await;
            }
        }
        self.clock.sleep(ON_ITS_WAY).await;
        other_tables::set_used(!other_tables::are_used());
        self.mem.read_again();
        let follows = |job: &Job| job.def.schedule.zone_followed().is_some();
        let jobs = self.mem.all_jobs();
        for job in jobs.iter().filter(|job| follows(job)) {
            self.ledger.book().record.read_again(job);
        }
        // By what was accepted there is no saying any more which slots they have.
        for (_, edited) in self.accepted.iter_mut().filter(|(job, _)| follows(job)) {
            *edited = true;
        }
        self.note(|| "other tables of time zones have come".to_owned());
    }

    fn spoil(&mut self, index: usize) {
        let badness = Badness {
            before: self.rng.random_range(0..200),
            after: if self.rng.random_bool(0.1) {
                // Everything is written, and hardly anyone hears of it.
                800
            } else {
                self.rng.random_range(0..200)
            },
            slow: Duration::from_millis([0, 1, 20, 700][self.rng.random_range(0..4)]),
            panics: if DUTIES_PANIC {
                self.rng.random_range(0..5)
            } else {
                0
            },
        };
        self.members[index].store.spoil(badness);
        self.note(|| format!("node {index} has {badness:?}"));
        let now = self.clock.uptime();
        self.spells.begin(index, Ill::Hurt, now, None);
    }

    fn cut(&mut self, index: usize, silent: bool) {
        let span = self.millis(100, 15_000);
        self.cut_for(index, silent, span);
    }

    fn cut_for(&mut self, index: usize, silent: bool, span: Duration) {
        let until = self.away(index, span);
        let now = self.clock.uptime();
        self.spells.begin(index, Ill::Away, now, Some(until));
        self.members[index].store.cut(Cut { until, silent });
        self.note(|| format!("node {index} is cut off until {until:?}, silently: {silent}"));
    }

    /// Nobody reaches the store. Some get an error at once, others wait in silence.
    fn outage(&mut self, span: Duration) {
        let now = self.clock.uptime();
        self.spells.begin_all(Ill::Away, now, now + span);
        for index in 0..self.members.len() {
            let silent = self.rng.random_bool(0.5);
            let until = self.away(index, span);
            self.members[index].store.cut(Cut { until, silent });
        }
        self.note(|| format!("the store is away for {span:?}"));
    }

    /// Until when a node is away that is away for `span` from now on.
    fn away(&mut self, index: usize, span: Duration) -> Duration {
        let now = self.clock.uptime();
        let until = now + span;
        let member = &mut self.members[index];
        member.away_until = member.away_until.max(until);
        until
    }

    /// Suspended: nothing of it moves, for longer than its presence lasts or not. Worst just before something is
    /// due, when it is claimed and not yet dispatched.
    async fn suspend(&mut self, index: usize) {
        if self.rng.random_bool(0.7) {
            let past = Clock::now(&self.clock).as_millis() % 1_000;
            let wait = (1_975 - past) % 1_000;
            let wait = Duration::from_millis(wait.unsigned_abs());
            self.clock.sleep(wait).await;
        }
        let span = self.millis(500, 15_000);
        let until = self.away(index, span);
        let now = self.clock.uptime();
        self.spells.begin(index, Ill::Away, now, Some(until));
        self.members[index].clock.pause.until(until);
        self.note(|| format!("node {index} stands still until {until:?}"));
    }

    /// The store's clock is stepped, and everyone who reads the time by it has to learn that.
    fn step(&mut self) {
        let now = self.clock.uptime();
        self.steps.push(now);
        self.spells.begin_all(Ill::Hurt, now, now + STEP_HEARD);
        let back = self.rng.random_bool(0.5);
        let most = match self.rng.random_range(0..20) {
            0..3 => 200,
            3..6 => 3_000,
            6..16 => 90_000,
            16..19 => 15 * 60_000,
            _ => 6 * 3_600_000,
        };
        let step = self.rng.random_range(1..most);
        let step = if back { -step } else { step };
        self.latest = self.latest.max(Clock::now(&self.clock));
        self.clock.step(step);
        self.note(|| format!("the store's clock is stepped by {step} ms"));
    }

    /// An origin refuses every call for a while.
    fn let_die(&mut self) {
        let most = if self.plan.is_long() { 300_000 } else { 25_000 };
        let span = self.millis(3_000, most);
        let address = ADDRESSES[self.rng.random_range(0..ADDRESSES.len())];
        let (origin, from) = (address.trim_end_matches('/'), self.clock.uptime());
        let to = from + span;
        self.origins.die(origin, Dead { from, to });
        self.note(|| format!("{origin} is dead for {span:?}"));
    }

    /// The wall clock of one node is set, rarely so far off that it must not fire.
    fn skew(&mut self, index: usize) {
        let mut skew = self.rng.random_range(-60_000..60_000);
        if self.rng.random_bool(0.2) {
            skew *= 2 * limits::CLOCK_SKEW_MAX.as_secs() as i64 / 60;
        }
        let clock = &self.members[index].clock;
        clock.skew.store(skew, Ordering::SeqCst);
        self.note(|| format!("the clock of node {index} is {skew} ms off"));
        if skew.unsigned_abs() as u128 > limits::CLOCK_SKEW_MAX.as_millis() / 2 {
            let now = self.clock.uptime();
            self.spells.begin(index, Ill::Unfit, now, None);
        }
    }
}
