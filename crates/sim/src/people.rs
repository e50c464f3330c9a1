//! What people do meanwhile: they make jobs and calendars, edit, pause, resume, delete, run by hand, cancel. Their way to
//! the store is no better than that of the nodes: what is not answered is requested again, word for word.

use std::sync::Arc;
use std::time::Duration;

use engine::Clock;
use model::{Job, JobState, Run, RunId, RunKind, RunState, Skip, TenantId, Timestamp, Version};
use rand::RngExt;
use store::{
    Cancelled, ClientStore, Created, EngineStore, Hint, Idempotency, JobChange, JobChanged, NewJob,
    RunsOfChange, StartRun, Started, StoreError,
};

use crate::faults::Badness;
use crate::jobs;
use crate::world::World;

/// So many jobs are active at once at the most.
const ACTIVE_MAX: usize = 16;
/// How often a client sends the same request, and how long it waits before the next try.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(40);

impl World {
    pub(crate) async fn create(&mut self) {
        let active = |job: &&Arc<Job>| job.state == JobState::Active;
        let jobs = self.mem.all_jobs();
        let active: Vec<&Arc<Job>> = jobs.iter().filter(active).collect();
        if active.len() >= ACTIVE_MAX {
            let job = Arc::clone(active[self.rng.random_range(0..active.len())]);
            let after = job.deleted(Clock::now(&self.clock), &self.by);
            self.change(&job, after, RunsOfChange::Cancel).await;
        }
        let now = Clock::now(&self.clock);
        let long = self.plan.is_long();
        let job = Arc::new(jobs::job(&mut self.rng, now, &self.calendars, long));
        let idempotency = self.rng.random_bool(0.3).then(|| Idempotency {
            key: job.id.to_string(),
            digest: [1; 32],
        });
        let new = NewJob {
            job: Arc::clone(&job),
            idempotency,
        };
        self.worsen();
        let door = self.door.clone();
        let answers =
            self.until_answered(async || door.create_jobs(std::slice::from_ref(&new)).await);
        let answers = answers.await.unwrap_or_default();
        match answers.as_slice() {
            [Created::Done] => self.accepted.push((Arc::clone(&job), false)),
            [Created::Repeated(id)] if *id == job.id => {
                self.accepted.push((Arc::clone(&job), false));
            }
            other => {
                let seen = format!("{} was created: {other:?}", job.id);
                self.ledger.book().broken("sent_again_is_the_same", seen);
            }
        }
        let at = self.rng.random_range(0..self.members.len());
        let is_nudged = self.rng.random_bool(0.5);
        if let Some(node) = self.members[at].node.as_ref().filter(|_| is_nudged) {
            node.handle().offer(&job);
        }
    }

    /// The way that people have to the store is bad now and then.
    fn worsen(&mut self) {
        let badness = if self.rng.random_bool(0.4) {
            Badness {
                before: self.rng.random_range(0..300),
                after: self.rng.random_range(0..500),
                slow: Duration::from_millis([0, 1, 20, 300][self.rng.random_range(0..4)]),
                panics: 0,
            }
        } else {
            Badness::default()
        };
        self.door.spoil(badness);
    }

    /// Calls until there is an answer.
    async fn until_answered<T>(&self, call: impl AsyncFn() -> Result<T, StoreError>) -> Option<T> {
        for _ in 0..TRIES {
            if let Ok(answer) = call().await {
                return Some(answer);
            }
            self.clock.sleep(TRY_AGAIN).await;
        }
        None
    }

    /// A calendar is made, or changed.
    pub(crate) async fn put_calendar(&mut self, name: &str) {
        let now = Clock::now(&self.clock);
        let Some(mut calendar) = jobs::calendar(&mut self.rng, name, now) else {
            return;
        };
        let place = self
            .calendars
            .iter()
            .position(|calendar| calendar.name.as_str() == name);
        let before = place.map(|place| self.calendars.remove(place).version);
        calendar.version = before.map_or(Version::FIRST, Version::next);
        let _ = self
            .mem
            .put_calendar(TenantId::DEFAULT, &calendar, before)
            .await;
        self.calendars.push(Arc::new(calendar));
    }

    /// Somebody edits, pauses, resumes, deletes, runs by hand or cancels, and one node hears of it.
    pub(crate) async fn meddle(&mut self, at: usize) {
        if self.accepted.is_empty() {
            return;
        }
        let index = self.rng.random_range(0..self.accepted.len());
        let id = self.accepted[index].0.id;
        let Ok(Some(job)) = self.mem.get_job(TenantId::DEFAULT, id).await else {
            return;
        };
        self.worsen();
        let now = Clock::now(&self.clock);
        let by = Arc::clone(&self.by);
        match self.rng.random_range(0..7) {
            0 if job.state == JobState::Active => {
                let after = job.paused(now, None, &by);
                self.change(&job, after, RunsOfChange::TakeBack).await;
            }
            1 if job.state == JobState::Paused => {
                let after = job.resumed(now, self.rng.random_bool(0.3), &by);
                self.change(&job, after, RunsOfChange::Keep).await;
            }
            2 => {
                self.accepted[index].1 = true;
                let long = self.plan.is_long();
                let def = jobs::definition(&mut self.rng, now, &self.calendars, long);
                let after = job.edited(job.key.clone(), def, now, &by);
                self.change(&job, after, RunsOfChange::TakeBack).await;
            }
            3 => self.run_by_hand(&job, now).await,
            4 => self.cancel_one(now).await,
            5 if self.rng.random_bool(0.3) => {
                let after = job.deleted(now, &by);
                self.change(&job, after, RunsOfChange::Cancel).await;
            }
            6 => {
                let name = ["one", "two"][self.rng.random_range(0..2)];
                self.put_calendar(name).await;
                let is_nudged = self.rng.random_bool(0.5);
                if let Some(node) = self.members[at].node.as_ref().filter(|_| is_nudged) {
                    node.handle().nudge_rules();
                }
            }
            _ => {}
        }
        if let Some(node) = &self.members[at].node {
            node.handle().nudge_plan(job.tenant, id);
            node.handle().nudge_holder();
        }
        if self.rng.random_bool(0.5) {
            // Whoever may have missed something reads all that is due.
            self.mem.hint(&[Hint::Lost]);
        }
    }

    /// Somebody changes what becomes of lost attempts, of a job that has one under way.
    pub(crate) async fn change_delivery(&mut self) {
        let now = Clock::now(&self.clock);
        let live = self.mem.live_runs();
        let under_way = |run: &&Run| run.claim.is_some() && run.due_at <= now;
        let under_way: Vec<&Run> = live.iter().filter(under_way).collect();
        if under_way.is_empty() {
            return;
        }
        let id = under_way[self.rng.random_range(0..under_way.len())].job;
        let of_run = |(job, _): &(Arc<Job>, bool)| job.id == id;
        let Some(index) = self.accepted.iter().position(of_run) else {
            return;
        };
        let Ok(Some(job)) = self.mem.get_job(TenantId::DEFAULT, id).await else {
            return;
        };
        self.accepted[index].1 = true;
        let def = jobs::with_other_delivery(&job.def);
        let after = job.edited(job.key.clone(), def, now, &self.by);
        self.change(&job, after, RunsOfChange::TakeBack).await;
    }

    async fn change(
        &mut self,
        before: &Job,
        (after, skipped): (Job, Vec<Skip>),
        runs: RunsOfChange,
    ) {
        if after.state == JobState::Deleted {
            self.requests.deleted.insert(after.id);
        }
        let change = JobChange {
            before: Arc::new(before.clone()),
            after: Arc::new(after),
            skipped,
            runs,
        };
        let door = self.door.clone();
        let changed = self
            .until_answered(async || door.change_job(&change).await)
            .await;
        let after = &change.after;
        // Sent again, the change meets what it has made itself.
        let is_ours = |job: &Job| {
            (job.version, job.state) == (after.version, after.state) && job.def == after.def
        };
        let accepted = match &changed {
            Some(JobChanged::Done { .. }) => true,
            Some(JobChanged::Conflict(job)) => is_ours(job),
            Some(
                JobChanged::KeyTaken(_)
                | JobChanged::CalendarMissing(_)
                | JobChanged::QuotaExceeded(_)
                | JobChanged::Missing
                | JobChanged::Refused(_),
            )
            | None => false,
        };
        if accepted {
            let made = (after.id, after.version, after.state);
            self.requests.changed.push(made);
        }
    }

    async fn run_by_hand(&mut self, job: &Job, now: Timestamp) {
        let id = RunId::of_request(job.id, now, self.rng.random());
        let own = self.rng.random_bool(0.3);
        let payload = own.then(|| jobs::payload(&mut self.rng));
        let run = Run {
            id,
            tenant: job.tenant,
            job: job.id,
            kind: RunKind::Manual,
            slot: None,
            replay_of: None,
            due_at: now,
            lane: job.def.lane,
            state: RunState::Ready,
            reason: None,
            attempt: model::AttemptNo::FIRST,
            lost: 0,
            version: job.version,
            claim: None,
            mark: None,
            wait: None,
            woken_at: None,
            dispatched_at: None,
            settled_at: None,
            payload: payload.clone(),
            payload_left: None,
            trace: None,
            stretch: None,
            note: None,
            actor: None,
            attempts: Vec::new(),
        };
        let force = self.rng.random_bool(0.2);
        let (door, start) = (self.door.clone(), StartRun { run, force });
        let started = self
            .until_answered(async || door.start_run(&start).await)
            .await;
        match &started {
            Some(Started::Ready | Started::Waiting | Started::Repeated) => {
                self.requests.started.insert(id, payload);
            }
            Some(Started::Refused(_) | Started::Missing) | None => {}
        }
        let (mut book, now) = (self.ledger.book(), self.clock.uptime());
        // It may have replaced the run that its job rested for.
        book.changed(job.id, now);
        book.note_of(job.id, now, || format!("start {id}: {started:?}"));
    }

    async fn cancel_one(&mut self, now: Timestamp) {
        let live = self.mem.live_runs();
        if live.is_empty() {
            return;
        }
        let run = &live[self.rng.random_range(0..live.len())];
        let (door, id) = (self.door.clone(), run.id);
        let call = async || door.cancel_run(TenantId::DEFAULT, id, now).await;
        let cancelled = self.until_answered(call).await;
        match &cancelled {
            Some(Cancelled::Done(_) | Cancelled::Ended(RunState::Cancelled)) => {
                self.requests.cancelled.insert(id, self.clock.uptime());
            }
            Some(Cancelled::Marked | Cancelled::Ended(_) | Cancelled::Missing) | None => {}
        }
        let (mut book, now) = (self.ledger.book(), self.clock.uptime());
        book.changed(run.job, now);
        self.door.read_who_waits(run.job, &mut book);
        book.note_of(run.job, now, || format!("cancel {}: {cancelled:?}", run.id));
    }

    pub(crate) async fn pause_all(&mut self) {
        self.door.spoil(Badness::default());
        for (job, _) in self.accepted.clone() {
            for _ in 0..10 {
                let Ok(Some(job)) = self.mem.get_job(TenantId::DEFAULT, job.id).await else {
                    break;
                };
                if job.state != JobState::Active || !job.def.schedule.is_recurring() {
                    break;
                }
                let now = Clock::now(&self.clock);
                let after = job.paused(now, None, &self.by);
                self.change(&job, after, RunsOfChange::TakeBack).await;
            }
        }
    }
}
