//! Rules: when a calendar changes, or a new release brings other tables for a time zone, the jobs under it
//! are rescheduled, page by page. One node does it: the one that holds the first shard.
//!
//! What always holds: a rule is marked as applied after every job under it was scheduled by it, so whoever
//! comes after a crash begins that rule again; rescheduling twice changes nothing. An error of the store costs no progress.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt};
use model::schedule::{Kind, tzdb_version};
use model::{Job, JobId, JobState, Shard, Timestamp, limits};
use store::{Found, Hint, JobChange, JobChanged, Peer, Rule, RunsOfChange, Store, StoreError};
use tracing::{debug, info, warn};

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::flaw::Flaw;
use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::shards::Shards;

/// How often changed rules are looked for without a nudge.
const EVERY: Duration = Duration::from_secs(5);
/// Jobs of one step, and how many of them are read and written at once.
const PAGE: usize = 500;
const AT_ONCE: usize = 64;
/// How often one job is decided again when others change it meanwhile.
const TRIES_MAX: u32 = 32;

pub(crate) struct Ports {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub fleet: Arc<Fleet>,
    pub offers: Offers,
    pub metrics: Metrics,
    /// The node that decides.
    pub node: Arc<str>,
    pub flaw: Flaw,
    pub nudge: Nudge,
    pub beat: Nudge,
}

pub(crate) struct Rules {
    ports: Ports,
    under_way: Option<UnderWay>,
    /// Applied since it last rested. One that is still named has come into doubt at that moment, or the store knows of a node
    /// with other tables that was not heard of here yet.
    applied: Vec<Rule>,
}

struct UnderWay {
    rule: Rule,
    after: Option<JobId>,
    jobs: u64,
    moved: u64,
    /// Every job has been rescheduled.
    through: bool,
}

impl Rules {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            under_way: None,
            applied: Vec::new(),
        }
    }

    /// The first changed rule that may be applied now.
    async fn find(&self) -> Result<Option<UnderWay>, StoreError> {
        let changed = self.ports.store.rules_changed().await?;
        let may_apply = |rule: &Rule| self.may_apply(rule) && !self.applied.contains(rule);
        let rule = changed.into_iter().find(may_apply);
        Ok(rule.map(|rule| UnderWay {
            rule,
            after: None,
            jobs: 0,
            moved: 0,
            through: false,
        }))
    }

    /// A node with other tables would schedule the same jobs elsewhere at their next slot: while one lives,
    /// zones wait.
    fn may_apply(&self, rule: &Rule) -> bool {
        match rule {
            Rule::Calendar { .. } => true,
            Rule::Zone { .. } => {
                let alike = |peer: &Peer| peer.node.tables == tzdb_version();
                let fleet = &self.ports.fleet;
                let all_alike = |peers: &[Peer]| !peers.is_empty() && peers.iter().all(alike);
                !self.ports.flaw.skips_zones() && fleet.with_peers(|peers| all_alike(peers))
            }
        }
    }

    /// One page of jobs; true when it was the last.
    async fn apply(&self, work: &mut UnderWay) -> Result<bool, StoreError> {
        let ports = &self.ports;
        let page = ports.store.jobs_under(&work.rule, work.after, PAGE).await?;
        let tables = match work.rule {
            Rule::Calendar { .. } => false,
            Rule::Zone { .. } => true,
        };
        for some in page.chunks(AT_ONCE) {
            let read = ports.store.get_jobs(some).await?;
            // Plan parks what cannot be read when it is due.
            let reschedule = |read: Found<Job>| reschedule(ports, read.ok().flatten(), tables);
            let mut moved = stream::iter(read).map(reschedule).buffered(AT_ONCE);
            // They come in order, so whatever fails, those before it are done.
            for (_, job) in some {
                if let Some(moved) = moved.next().await {
                    work.moved += u64::from(moved?);
                }
                work.jobs += 1;
                work.after = Some(*job);
            }
        }
        Ok(page.len() < PAGE)
    }
}

/// Reschedules one job by its rules as they are now; true if that moved its next slot.
async fn reschedule(ports: &Ports, job: Option<Job>, tables: bool) -> Result<bool, StoreError> {
    let Some(mut before) = job else {
        return Ok(false);
    };
    let id = before.id;
    for _ in 0..TRIES_MAX {
        if before.state != JobState::Active {
            return Ok(false);
        }
        let now = ports.clock.now();
        if let Kind::Broken(broken) = &before.def.schedule.kind {
            warn!(job = %id, error = %broken.error, "cannot be planned any more and is parked");
            ports.store.park(&[(id, broken.error.clone())], now).await?;
            return Ok(true);
        }
        let (after, skipped) = if tables {
            before.rescheduled_by_tables(now, &ports.node)
        } else {
            before.rescheduled(now, &ports.node)
        };
        if skipped.is_empty() && is_settled(&before, &after, now, tables) {
            return Ok(false);
        }
        let change = JobChange {
            before: Arc::new(before),
            after: Arc::new(after),
            skipped,
            runs: RunsOfChange::TakeBack,
        };
        match ports.store.change_job(&change).await? {
            JobChanged::Done {
                job,
                marked,
                cancelled,
            } => {
                let metrics = &ports.metrics;
                metrics.job_changed(now, job.tenant, &change.skipped, cancelled);
                if !marked.is_empty() {
                    ports.beat.now();
                    ports.store.hint(&[Hint::Marks]);
                }
                return Ok(log_rescheduled(ports, &change.before, &job));
            }
            JobChanged::Conflict(found) => before = *found,
            JobChanged::KeyTaken(_)
            | JobChanged::CalendarMissing(_)
            | JobChanged::QuotaExceeded(_)
            | JobChanged::Missing => {
                return Ok(false);
            }
            JobChanged::Refused(why) => {
                warn!(job = %id, error = %why, "cannot be rescheduled: the store refuses it");
                return Ok(false);
            }
        }
    }
    // It changes all the time; whoever changes it schedules it by the rules as they are.
    Ok(false)
}

/// Whether a job follows its rules as it stands, so that nothing has to be written.
fn is_settled(before: &Job, after: &Job, now: Timestamp, tables: bool) -> bool {
    // One that may be in a wheel has been read with its calendars as they were, and would be moved onward by them; a
    // new version makes that stale. Tables are the same wherever a job was read.
    let near = now.plus(limits::HORIZON * 2);
    let is_far = before.next_due_at().is_none_or(|due_at| due_at > near);
    // A run fired ahead may be one that the rules would not have any more.
    let is_ahead = before.slot_last.is_some_and(|last| last > now);
    let stays = (before.state, before.next_slot) == (after.state, after.next_slot);
    stays && !is_ahead && (is_far || tables)
}

fn log_rescheduled(ports: &Ports, before: &Job, after: &Job) -> bool {
    let horizon = ports.clock.now().plus(limits::HORIZON);
    if after.next_due_at().is_some_and(|due_at| due_at <= horizon) {
        ports.offers.offer((after.tenant, after.id));
    }
    let moved = before.next_slot != after.next_slot;
    if moved {
        let shown = |job: &Job| {
            job.next_slot
                .map_or("none".to_owned(), |slot| slot.to_string())
        };
        info!(job = %after.id, before = shown(before), after = shown(after), "next slot has moved");
    } else {
        debug!(job = %after.id, "was rescheduled");
    }
    moved
}

#[async_trait]
impl Duty for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let first = Shard::all().next();
        if first.is_none_or(|first| self.ports.shards.leases().epoch(first).is_none()) {
            // Whoever has it now begins again, and so does this node when it is back: others may have scheduled meanwhile.
            self.under_way = None;
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        }
        if !self.ports.presence.is_sure() {
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        }
        let work = match self.under_way.take() {
            Some(work) => Some(work),
            None => self.find().await?,
        };
        let Some(mut work) = work.filter(|work| self.may_apply(&work.rule)) else {
            self.applied.clear();
            return Ok(Wake::At(now.plus(EVERY)));
        };
        if !work.through {
            let applied = self.apply(&mut work).await;
            work.through = matches!(applied, Ok(true));
            if !work.through {
                self.under_way = Some(work);
                return applied.map(|_| Wake::Now);
            }
        }
        if let Err(error) = self.ports.store.rule_applied(&work.rule).await {
            self.under_way = Some(work);
            return Err(error);
        }
        let (jobs, moved) = (work.jobs, work.moved);
        match &work.rule {
            Rule::Calendar { name, version, .. } => {
                info!(calendar = %name, %version, jobs, moved, "jobs follow a changed calendar");
            }
            Rule::Zone { name, .. } => {
                let tables = tzdb_version();
                info!(
                    zone = name,
                    tables, jobs, moved, "jobs follow changed zone tables"
                );
            }
        }
        self.applied.push(work.rule);
        Ok(Wake::Now)
    }
}
