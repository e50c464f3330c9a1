//! Changes: what people and calendars do to a job, and which slots each change explains. A change never
//! creates a slot in the past, nor one that was decided, and none that it passes is left without a reason.

use std::sync::Arc;
use std::time::Duration;

use crate::job::{Definition, Job, JobKey, JobState, Version};
use crate::limits;
use crate::policy::Delivery;
use crate::run::{Reason, Skip, Stretch};
use crate::time::{Slot, Timestamp};

impl Job {
    fn turn(&mut self, now: Timestamp, note: Option<String>) {
        self.version = self.version.next();
        self.updated_at = now;
        self.state_at = now;
        self.note = note;
        self.paused_by = None;
    }

    /// Another definition from `now` on, and the slots that it explains. It never creates a slot in the
    /// past, nor one that was decided. A slot that is overdue stays so under the same schedule; another
    /// one drops it. A paused job stays paused.
    pub fn edited(
        &self,
        key: Option<JobKey>,
        def: Definition,
        now: Timestamp,
        by: &Arc<str>,
    ) -> (Self, Vec<Skip>) {
        let mut job = Self {
            def: Arc::new(def),
            key,
            ..self.clone()
        };
        job.turn(now, None);
        if job.def.schedule.bounds.runs_max.is_none() {
            job.runs_made = 0;
        }
        if (self.def.delivery, job.def.delivery) == (Delivery::AtMostOnce, Delivery::AtLeastOnce) {
            job.once_until = Some(self.version);
        }
        let bounded = job.def.pause_after_failures;
        job.failures = bounded.map(|_| self.failures.unwrap_or(0));
        let stay = |job: &mut Self| {
            (job.state_at, job.note) = (self.state_at, self.note.clone());
            job.paused_by = self.paused_by.clone();
        };
        let same_schedule = job.def.schedule == self.def.schedule;
        match self.state {
            JobState::Paused => {
                stay(&mut job);
                if same_schedule {
                    return (job, Vec::new());
                }
                let skips: Vec<Skip> = self.passed_while_paused(now, by).into_iter().collect();
                job.account(&skips);
                job.begin(now);
                (job, self.by_day(skips))
            }
            JobState::Active if same_schedule && self.keeps_its_slot(now) => {
                job.state_at = self.state_at;
                (job, Vec::new())
            }
            JobState::Active | JobState::Finished | JobState::Invalid | JobState::Deleted => {
                let skips = match self.state {
                    JobState::Invalid => self.passed_while_invalid(now, by),
                    JobState::Active
                    | JobState::Paused
                    | JobState::Finished
                    | JobState::Deleted => self.undecided(now, Reason::Missed, by),
                };
                job.account(&skips);
                if !same_schedule {
                    job.begin(now);
                }
                job.compute_next(now);
                if job.state == self.state {
                    job.state_at = self.state_at;
                }
                (job, self.by_day(skips))
            }
        }
    }

    /// Another schedule begins: what lies before is recorded by the one it belonged to.
    fn begin(&mut self, now: Timestamp) {
        if self.def.schedule.is_recurring() {
            self.slot_last = self.slot_last.max(Some(now));
        }
    }

    /// Slots that are explained are decided.
    fn account(&mut self, skips: &[Skip]) {
        let last = skips.last().map(|skip| skip.slots.last.0);
        self.slot_last = self.slot_last.max(last);
    }

    /// The next slot, if it has passed without being decided.
    fn overdue(&self, now: Timestamp) -> Option<Slot> {
        self.next_slot.filter(|slot| slot.0 <= now)
    }

    /// Whether the next slot stays where it is while the schedule does: it is overdue, or it was set
    /// by the end of a run.
    fn keeps_its_slot(&self, now: Timestamp) -> bool {
        self.overdue(now).is_some() || self.def.schedule.after_completion()
    }

    /// The same definition after one of its calendars has changed: from that change on, not from now, so
    /// that a slot which came since is late and not lost.
    pub fn rescheduled(&self, now: Timestamp, by: &Arc<str>) -> (Self, Vec<Skip>) {
        let changed_at = self.def.schedule.calendars.changed_at();
        let since = changed_at.map_or(now, |at| at.max(self.updated_at));
        self.rescheduled_since(since.min(now), now, by)
    }

    /// The same definition under other tables of its zone. Tables say nothing of when they changed: no
    /// slot of theirs lies in the past. A calendar that has changed since the job was written has slots there all the same,
    /// and whoever applies it next would not find them behind this write.
    pub fn rescheduled_by_tables(&self, now: Timestamp, by: &Arc<str>) -> (Self, Vec<Skip>) {
        let changed_at = self.def.schedule.calendars.changed_at();
        let unapplied = changed_at.filter(|at| *at > self.updated_at);
        let since = unapplied.map_or(now, |at| at.min(now));
        self.rescheduled_since(since, now, by)
    }

    fn rescheduled_since(
        &self,
        since: Timestamp,
        now: Timestamp,
        by: &Arc<str>,
    ) -> (Self, Vec<Skip>) {
        let mut job = self.clone();
        let (state_at, note, paused_by) = (job.state_at, job.note.clone(), job.paused_by.clone());
        job.turn(now, note);
        (job.state_at, job.paused_by) = (state_at, paused_by);
        match self.state {
            JobState::Active if !self.keeps_its_slot(now) => {
                let skips = self.undecided(since, Reason::Missed, by);
                job.account(&skips);
                job.compute_next(since);
                if job.state != self.state {
                    job.state_at = now;
                }
                (job, self.by_day(skips))
            }
            JobState::Active
            | JobState::Paused
            | JobState::Finished
            | JobState::Invalid
            | JobState::Deleted => (job, Vec::new()),
        }
    }

    /// Takes it out of the plan. What calendars left out before is written down with it.
    pub fn paused(&self, now: Timestamp, note: Option<String>, by: &Arc<str>) -> (Self, Vec<Skip>) {
        let mut job = Self {
            state: JobState::Paused,
            next_slot: None,
            ..self.clone()
        };
        let overdue = self.overdue(now);
        let before_it = |slot: Slot| slot.0.minus(Duration::from_millis(1));
        let mut skips = Vec::new();
        if let Some(slot) = overdue.filter(|_| self.def.schedule.after_completion()) {
            // It is the only one, and could not be found again when the pause ends.
            skips.push(Skip {
                slots: Stretch::one(slot),
                reason: Reason::Paused,
                note: note.clone(),
                actor: Arc::clone(by),
            });
        } else if self.def.schedule.leaves_out() {
            skips = self.undecided(overdue.map_or(now, before_it), Reason::Missed, by);
        }
        // What came before the pause is decided or missed as ever; what follows is the pause's. A slot
        // overdue at this very moment belongs to the pause, so that it is not lost.
        job.slot_last = match overdue.filter(|_| !self.def.schedule.after_completion()) {
            Some(slot) => Some(before_it(slot)),
            None => Some(self.slot_last.map_or(now, |last| last.max(now))),
        };
        job.turn(now, note);
        job.paused_by = Some(Arc::clone(by));
        (job, self.by_day(skips))
    }

    /// Goes on from `now`, or where the pause began if it is to catch up: then what passed is missed,
    /// and the catch-up policy decides. Else it is skipped.
    pub fn resumed(&self, now: Timestamp, catch_up: bool, by: &Arc<str>) -> (Self, Vec<Skip>) {
        let mut job = self.clone();
        job.turn(now, None);
        job.failures = self.failures.map(|_| 0);
        if catch_up && !self.def.schedule.after_completion() {
            job.compute_next(self.slot_last.unwrap_or(self.state_at));
            return (job, Vec::new());
        }
        let skips: Vec<Skip> = self.passed_while_paused(now, by).into_iter().collect();
        job.account(&skips);
        job.compute_next(now);
        (job, self.by_day(skips))
    }

    /// The slots a paused job has let pass up to `now`; `by` stands in for whoever paused it.
    pub fn passed_while_paused(&self, now: Timestamp, by: &Arc<str>) -> Option<Skip> {
        self.passed_since(self.slot_last.unwrap_or(self.state_at), now)
            .map(|slots| Skip {
                slots,
                reason: Reason::Paused,
                note: self.note.clone(),
                actor: Arc::clone(self.paused_by.as_ref().unwrap_or(by)),
            })
    }

    /// The slots that passed while it could not be planned.
    pub fn passed_while_invalid(&self, now: Timestamp, by: &Arc<str>) -> Vec<Skip> {
        let slots = self.passed_since(self.slot_last.unwrap_or(self.created_at), now);
        let skip = |slots| Skip {
            slots,
            reason: Reason::Invalid,
            note: self.note.clone(),
            actor: Arc::clone(by),
        };
        slots.map(skip).into_iter().collect()
    }

    /// The slots after `from` and up to `now`. Those that only the end of a run sets do not exist.
    fn passed_since(&self, from: Timestamp, now: Timestamp) -> Option<Stretch> {
        let schedule = &self.def.schedule;
        let first = schedule
            .next_after(from)
            .filter(|_| !schedule.after_completion())?;
        (first.0 <= now).then(|| self.stretch_until(first, now))
    }

    /// Gone, and the slots that had no turn yet.
    pub fn deleted(&self, now: Timestamp, by: &Arc<str>) -> (Self, Vec<Skip>) {
        let skips = match self.state {
            JobState::Active => self.undecided(now, Reason::JobDeleted, by),
            JobState::Paused => self.passed_while_paused(now, by).into_iter().collect(),
            JobState::Invalid => self.passed_while_invalid(now, by),
            JobState::Finished | JobState::Deleted => Vec::new(),
        };
        let mut job = Self {
            state: JobState::Deleted,
            next_slot: None,
            ..self.clone()
        };
        job.turn(now, None);
        (job, self.by_day(skips))
    }

    /// Parked: it cannot be planned, and says why.
    pub fn invalid(&self, now: Timestamp, error: String) -> Self {
        let mut job = Self {
            state: JobState::Invalid,
            next_slot: None,
            ..self.clone()
        };
        job.turn(now, Some(error));
        job
    }

    /// What stays decided when a run of `slot` is taken back: everything up to here.
    pub fn decided_before(&self, slot: Slot) -> Timestamp {
        let mut before = slot.0.minus(Duration::from_millis(1));
        let ahead = slot.0.since(self.updated_at);
        if self.version > Version::FIRST && ahead <= limits::LEAD_MAX + limits::BEAT_EVERY {
            // A new definition counts from its edit on: slots of its own may lie before this one. A run
            // is made at most a lead ahead, so an edit that lies further back was made by a clock that
            // has gone back, and what came since is decided.
            before = before.min(self.updated_at);
        }
        self.slot_last.map_or(before, |last| last.min(before))
    }

    /// A run of `slot` was taken back before it was dispatched, at `now`: as if never fired. The
    /// slot is decided again, by the definition as it stands. `ran` are the slots after `decided_before` and before
    /// this one that have a run, live or ended, oldest first: those are not decided again.
    pub fn taken_back(&self, slot: Slot, now: Timestamp, ran: &[Slot]) -> Self {
        let mut job = self.clone();
        job.runs_made = self.runs_made.saturating_sub(1);
        let mut decided = self.decided_before(slot);
        for ran in ran {
            // One without a run may lie before it: taken back earlier, or of a definition that is newer.
            let next = self.def.schedule.next_after(decided);
            if self.def.schedule.after_completion() || next.is_none_or(|next| next >= *ran) {
                decided = decided.max(ran.0);
            }
        }
        job.slot_last = Some(decided);
        match self.state {
            JobState::Active | JobState::Finished if self.def.schedule.after_completion() => {
                // It exists because an earlier run ended; only an edit of the schedule has another, or
                // bounds that leave it out.
                let bounds = self.def.schedule.bounds;
                let begun = bounds.starts_at.is_none_or(|start| slot.0 >= start);
                let goes_on = bounds.ends_at.is_none_or(|end| slot.0 <= end);
                // A bound that was lowered may be spent even so.
                let spent = job.runs_left() == Some(0);
                job.next_slot = self.next_slot.or(Some(slot).filter(|_| begun && goes_on));
                job.next_slot = job.next_slot.filter(|_| !spent);
                job.state = JobState::Active;
                if job.next_slot.is_none() {
                    job.compute_next(now);
                }
            }
            JobState::Active | JobState::Finished => {
                // From the last decided slot, not from `now`: an earlier one may have been taken
                // back before this one, and must not be left out.
                job.compute_next(now.min(decided));
            }
            JobState::Paused | JobState::Invalid | JobState::Deleted => {}
        }
        job
    }

    /// Its run has ended: a job that rests goes on a period after `ended_at`.
    pub fn rested(&self, ended_at: Timestamp) -> Self {
        let mut job = self.clone();
        if self.is_resting() {
            job.compute_next(ended_at);
            if job.state != self.state {
                job.state_at = ended_at;
            }
        }
        job
    }

    /// An edit met a run that lives: its end sets the next slot, nothing else.
    pub fn resting(&self) -> Self {
        let rests = self.state == JobState::Active && self.def.schedule.after_completion();
        Self {
            next_slot: self.next_slot.filter(|_| !rests),
            ..self.clone()
        }
    }
}
