//! The maps, what a decision sees of them, and how its effects are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::runs_day::Day;
use model::view::{Effects, History, Needs, PAST_BACK, PAST_MAX, Past, View};
use model::{
    BeatMark, Calendar, CalendarName, Job, JobId, JobKey, Level, Partition, PresenceId, ReplayId,
    Run, RunId, RunKind, RunState, Shard, TenantId, Timestamp, Usage, Version,
};

use super::access::Access;
use super::alerts::Alerts;
use super::audit::Log;
use super::handed::Outside;
use super::overview::Rollups;
use super::secrets::Secrets;
use super::users::Users;
use crate::audit::Change;
use crate::{
    Acting, Epoch, Hint, JobVersion, Leases, LowWater, NodeInfo, NodeStatus, Replay, StoreError,
};

/// Everything the store knows. What always holds: `keys` names jobs that are not deleted; a live run's job
/// is in `jobs`; an id that is in both `live` and `history` was decided again, and `live` is what counts.
#[derive(Default)]
pub(super) struct State {
    /// The latest moment seen; a clock may go back.
    pub seen: Timestamp,
    /// What time it is, and who acts, while the lock is held.
    pub now: Timestamp,
    pub acting: Arc<Acting>,
    pub level: Level,
    pub presences: BTreeMap<PresenceId, Presence>,
    pub leases: BTreeMap<Shard, Lease>,
    pub jobs: BTreeMap<JobId, Arc<Job>>,
    pub keys: BTreeMap<(TenantId, JobKey), JobId>,
    /// What tenants have of what quotas bound.
    pub uses: BTreeMap<TenantId, Usage>,
    /// Runs of a day, by whom they were counted.
    pub run_counts: BTreeMap<(Day, TenantId, PresenceId), u64>,
    pub calendars: BTreeMap<(TenantId, CalendarName), Kept>,
    /// Zones that jobs follow, with the digest of the tables they were scheduled by.
    pub zones: BTreeMap<String, u64>,
    pub requests: BTreeMap<(TenantId, String), Request>,
    pub access: Access,
    pub log: Log,
    pub versions: BTreeMap<(JobId, Version), JobVersion>,
    pub secrets: Secrets,
    pub replays: BTreeMap<ReplayId, Replay>,
    pub alerts: Alerts,
    pub users: Users,
    pub rollups: Rollups,
    /// What is kept of handed-over attempts.
    pub outside: Outside,
    pub live: Live,
    pub history: BTreeMap<RunId, Run>,
    /// The partitions that history has, and from when the keep time of each counts.
    pub partitions: BTreeMap<Partition, Timestamp>,
}

/// A node that lives, or has lived. The end is wall time, for readers and verdicts.
pub(super) struct Presence {
    pub node: NodeInfo,
    pub node_status: NodeStatus,
    pub low_water: LowWater,
    pub joined_at: Timestamp,
    /// Hints for it since it last read them.
    pub hints: Vec<Hint>,
    /// When its last beat was, by uptime, and its mark.
    pub beaten: Duration,
    pub mark: BeatMark,
    /// The latest moment that its beats were answered with.
    pub clock_read: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// A calendar, and the version that all jobs which name it were scheduled by.
pub(super) struct Kept {
    pub calendar: Arc<Calendar>,
    pub applied: Version,
    pub doubts: u32,
}

/// Who holds a shard; nobody after it was given up.
pub(super) struct Lease {
    pub holder: Option<PresenceId>,
    pub epoch: Epoch,
    /// The low-water mark of one that was given up; of another it is its holder's.
    pub low_water: Timestamp,
}

/// A create that was answered, under its idempotency key.
pub(super) struct Request {
    pub digest: [u8; 32],
    pub job: JobId,
    pub at: Timestamp,
}

/// The runs that still move, by id and by job.
#[derive(Default)]
pub(super) struct Live {
    pub runs: BTreeMap<RunId, Run>,
    by_job: BTreeSet<(JobId, RunId)>,
}

impl Live {
    pub(super) fn insert(&mut self, run: Run) {
        self.by_job.insert((run.job, run.id));
        self.runs.insert(run.id, run);
    }

    pub(super) fn remove(&mut self, id: RunId) -> Option<Run> {
        let run = self.runs.remove(&id)?;
        self.by_job.remove(&(run.job, id));
        Some(run)
    }

    /// A job's runs, oldest first.
    pub(super) fn of_job(&self, job: JobId) -> impl DoubleEndedIterator<Item = &Run> {
        let first = RunId::from_bytes([0; 16]);
        let last = RunId::from_bytes([u8::MAX; 16]);
        let ids = self.by_job.range((job, first)..=(job, last));
        ids.filter_map(|(_, id)| self.runs.get(id))
    }
}

impl State {
    /// The presence, unless it has ended or was never there.
    pub(super) fn living(&self, id: PresenceId) -> Result<&Presence, StoreError> {
        let presence = self
            .presences
            .get(&id)
            .filter(|presence| presence.ended_at.is_none());
        presence.ok_or(StoreError::Fenced)
    }

    /// Whether the leases still give the right to write about a shard.
    pub(super) fn holds(&self, leases: &Leases, shard: Shard) -> bool {
        let held = self.leases.get(&shard).is_some_and(|lease| {
            lease.holder == Some(leases.presence) && leases.epoch(shard) == Some(lease.epoch)
        });
        held && self.living(leases.presence).is_ok()
    }

    /// A job as it stands, and its living runs.
    pub(super) fn view(&self, job: JobId) -> View {
        View {
            job: self.jobs.get(&job).map(|job| Job::clone(job)),
            live: self
                .live
                .of_job(job)
                .map(|run| (run.id, run.clone()))
                .collect(),
            ..View::default()
        }
    }

    /// Reads what a decision needs of history.
    pub(super) fn read_history(&self, job: JobId, needs: Needs) -> History {
        let named = needs.named.and_then(|id| self.history.get(&id));
        let mut history = History {
            named: named.map(|run| (run.state, run.reason)),
            ..History::default()
        };
        if let Some(moment) = needs.past {
            history.past = self.past(job, moment);
        }
        let Some((first, end)) = needs.ran else {
            return history;
        };
        let of_job = |run: &&Run| run.job == job && run.kind == RunKind::Slot;
        let skipped = |run: &&Run| run.state == RunState::Skipped;
        let ids = RunId::least_at(first)..RunId::least_at(end);
        if !ids.is_empty() {
            let ended = self.history.range(ids).map(|(_, run)| run).filter(of_job);
            let ran = ended.filter(|run| !skipped(run));
            history.ran = ran.filter_map(|run| run.slot).collect();
        }
        if needs.skips {
            // Of records that begin before, only the last can reach beyond.
            let after = RunId::least_at(first.plus(Duration::from_millis(1)));
            let earlier = self.history.range(..after).rev().map(|(_, run)| run);
            let later = self.history.range(after..).map(|(_, run)| run);
            let all = earlier.filter(of_job).take(1).chain(later.filter(of_job));
            let records = all.filter(skipped);
            history.skips = records
                .filter_map(|run| Some((run.id, run.slots()?)))
                .collect();
        }
        history
    }

    /// Runs that were under way at a moment and have ended since.
    fn past(&self, job: JobId, moment: Timestamp) -> Vec<Past> {
        let ids = RunId::least_at(moment.minus(PAST_BACK))..RunId::least_at(moment);
        let ended = self.history.range(ids).rev().map(|(_, run)| run);
        let ended = ended.filter(|run| run.job == job && run.state != RunState::Skipped);
        let past = ended.take(PAST_MAX).filter_map(|run| {
            Some(Past {
                id: run.id,
                kind: run.kind,
                dispatched_at: run.dispatched_at.filter(|at| *at < moment)?,
                settled_at: run.settled_at.filter(|at| *at > moment)?,
            })
        });
        past.collect()
    }

    /// Writes what was decided about a job.
    pub(super) fn apply(&mut self, id: JobId, effects: Effects) {
        if let Some(job) = effects.job {
            self.audit_end(&job);
            if let Some(before) = effects.paused {
                self.audit_as(&Acting::default(), Change::job_changed(&before, &job));
            }
            self.jobs.insert(id, Arc::new(job));
        }
        if let Some((why, at)) = effects.park {
            self.park(&[(id, why)], at);
        }
        for run in effects.remove {
            self.live.remove(run.id);
        }
        for changed in effects.change.into_values() {
            self.live.insert(changed.now);
        }
        for (id, left) in effects.skips {
            match (left, self.history.get_mut(&id)) {
                (Some(slots), Some(run)) => run.stretch = slots.several(),
                (None, Some(_)) => {
                    self.history.remove(&id);
                }
                (_, None) => {}
            }
        }
        for run in effects.history.values() {
            let (partition, kept_from) = run.partition();
            let kept = self.partitions.entry(partition).or_insert(kept_from);
            *kept = kept_from.max(*kept);
            self.alerts.note(run);
        }
        self.history.extend(effects.history);
        for run in effects.insert {
            self.live.insert(run);
        }
        self.outside.apply(effects.handed);
    }

    /// Live and history in one.
    pub(super) fn all_runs(&self) -> BTreeMap<RunId, Run> {
        let mut runs = self.history.clone();
        runs.extend(self.live.runs.iter().map(|(id, run)| (*id, run.clone())));
        runs
    }
}
