//! Calls on a store and their answers, whole: so that a call can be made again, split by job, and made on another
//! store.

use std::sync::Arc;

use model::job::Decision;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    Job, JobId, Lane, PresenceId, Run, RunId, RunState, Shard, TenantId, Timestamp, Version,
};

use super::outside::{hand_over, heartbeat, lapse, queue, report};
use crate::{
    Beaten, Cancelled, Claimed, Created, DueRoom, Epoch, Fired, Firing, HandOver, HandedEnd,
    HandedOver, Heartbeat, JobChange, JobChanged, Lapse, Leases, NewJob, NodeStatus, Page,
    QueueRun, Queued, Reported, RunFilter, Settled, Settlement, StartRun, Started, Store,
    StoreError, Withdrawal,
};

/// More runs than a job has here.
pub(super) const MANY: usize = 1_000;

#[derive(Debug, Clone)]
pub(super) enum Call {
    Create(Vec<NewJob>),
    Change(Box<JobChange>),
    Start(Box<StartRun>),
    Cancel(JobId, RunId, Timestamp),
    Fire(Leases, Vec<Firing>),
    Claim(Leases, Vec<Named>),
    ClaimDue(PresenceId, ShardSet, Timestamp, usize),
    Mark(PresenceId, Vec<Named>),
    Withdraw(PresenceId, Vec<(Named, bool)>, Timestamp),
    Settle(PresenceId, Vec<Settlement>),
    HandOver(PresenceId, Vec<HandOver>, Timestamp),
    Heartbeat(Vec<(JobId, Heartbeat)>, Timestamp),
    Report(Vec<(JobId, Reported)>, Timestamp),
    Lapse(Leases, Vec<Lapse>, Timestamp),
    Queue(Vec<QueueRun>),
    Lease(PresenceId, ShardSet),
    Leave(PresenceId),
    Beat(PresenceId),
    Fence(PresenceId, LastBeat),
    ReadJob(JobId),
    ReadRuns(JobId),
    ReadSlots(JobId),
}

/// A run as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub run: RunId,
    pub job: JobId,
    pub due_at: Timestamp,
}

impl Named {
    pub(super) fn of(run: &Run) -> Self {
        Self {
            run: run.id,
            job: run.job,
            due_at: run.due_at,
        }
    }
}

/// What was answered about one item of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Done,
    /// The presence has ended.
    Fenced,
    /// The presence ended while a batch was written: parts of it may have been.
    Unknown,
    /// Neither yes nor no: no store that can be reached says this.
    Failed(String),
    Created(Created),
    Changed(JobChanged),
    Started(Started),
    Cancelled(Cancelled),
    Fired(Fired),
    Claimed(Claimed),
    Taken(Vec<(Run, Arc<Job>)>),
    Settled(Settled),
    HandedOver(HandedOver),
    Beaten(Beaten),
    HandedEnd(HandedEnd),
    Queued(Queued),
    Leased(Vec<(Shard, Epoch)>),
    Ended(Vec<PresenceId>),
    Job(Option<Box<Job>>),
    Runs(Vec<Run>),
}

/// Whom an item of a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Job(JobId),
    /// Presences and leases: every job.
    All,
}

/// One item of a call, as a call of its own, and its answer.
pub(super) type Item = (About, Call, Answer);

/// How a firing is made; the one place that knows its fields.
pub(super) fn firing_of(job: &Arc<Job>, decision: Decision, claim: bool) -> Firing {
    Firing {
        job: job.clone(),
        decision,
        claim,
        knows: Vec::new(),
    }
}

/// How runs are named to `EngineStore::claim`.
fn claimed_names(runs: &[Named]) -> Vec<RunId> {
    runs.iter().map(|named| named.run).collect()
}

/// The answer to an item, or why there is none.
fn one<T>(answer: Result<T, StoreError>, to: impl FnOnce(T) -> Answer) -> Answer {
    match answer {
        Ok(answer) => to(answer),
        Err(StoreError::Fenced) => Answer::Fenced,
        Err(error) => Answer::Failed(format!("{error:?}")),
    }
}

/// One answer for each item; an error is everyone's.
pub(super) fn each<T>(
    count: usize,
    answers: Result<Vec<T>, StoreError>,
    to: impl Fn(T) -> Answer,
) -> Vec<Answer> {
    match answers {
        Ok(answers) => answers.into_iter().map(to).collect(),
        Err(StoreError::Fenced) => vec![Answer::Fenced; count],
        Err(error) => vec![Answer::Failed(format!("{error:?}")); count],
    }
}

impl Call {
    /// Makes the call; answers item by item.
    pub(super) async fn make(&self, store: &dyn Store) -> Vec<Item> {
        let tenant = TenantId::DEFAULT;
        let (about, answer) = match self {
            Self::Create(jobs) => return create(store, jobs).await,
            Self::Fire(leases, firings) => return fire(store, leases, firings).await,
            Self::Claim(leases, runs) => return claim(store, leases, runs).await,
            Self::Settle(by, settlements) => return settle(store, *by, settlements).await,
            Self::Mark(by, runs) => return mark(store, *by, runs).await,
            Self::Withdraw(by, runs, now) => return withdraw(store, *by, runs, *now).await,
            Self::HandOver(by, items, now) => return hand_over(store, *by, items, *now).await,
            Self::Heartbeat(items, now) => return heartbeat(store, items, *now).await,
            Self::Report(items, now) => return report(store, items, *now).await,
            Self::Lapse(leases, items, now) => return lapse(store, leases, items, *now).await,
            Self::Queue(runs) => return queue(store, runs).await,
            Self::ClaimDue(by, shards, up_to, room) => {
                match store
                    .claim_due(
                        *by,
                        shards,
                        DueRoom::for_earliest(*up_to, [*room; Lane::COUNT]),
                    )
                    .await
                {
                    Ok(taken) => return self.taken(taken),
                    Err(error) => (About::All, one(Err(error), |()| Answer::Done)),
                }
            }
            Self::Change(change) => {
                let changed = one(store.change_job(change).await, changed_of);
                (About::Job(change.before.id), changed)
            }
            Self::Start(start) => {
                let started = one(store.start_run(start).await, Answer::Started);
                (About::Job(start.run.job), started)
            }
            Self::Cancel(job, run, now) => {
                let cancelled = store.cancel_run(tenant, *run, *now).await;
                (About::Job(*job), one(cancelled, cancelled_of))
            }
            Self::Lease(by, wanted) => (About::All, one(store.lease(*by, wanted).await, leased)),
            Self::Leave(by) => (About::All, one(store.leave(*by).await, |()| Answer::Done)),
            Self::Beat(by) => {
                let beat = store.beat(*by, &NodeStatus::default()).await;
                (About::All, one(beat, |_| Answer::Done))
            }
            Self::Fence(by, last) => (About::All, one(store.fence(*by, &[*last]).await, ended)),
            Self::ReadJob(job) => {
                let read = store.get_job(tenant, *job).await;
                let answer = one(read, |job| Answer::Job(job.map(Box::new)));
                (About::Job(*job), answer)
            }
            Self::ReadRuns(job) => (About::Job(*job), read_runs(store, *job).await),
            Self::ReadSlots(job) => {
                let (from, to) = (Timestamp::MIN, Timestamp::MAX);
                let slots = store.list_slots(tenant, *job, from, to, MANY).await;
                (About::Job(*job), one(slots, runs_of))
            }
        };
        vec![(about, self.clone(), answer)]
    }

    /// What was taken, job by job. Of what was not taken nothing is known: someone else may have been changing it.
    fn taken(&self, taken: Vec<(Run, Arc<Job>)>) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for (run, job) in taken {
            let about = About::Job(job.id);
            match items.iter_mut().find(|(of, ..)| *of == about) {
                Some((_, _, Answer::Taken(runs))) => runs.push((norm(run), job)),
                Some(_) | None => {
                    items.push((about, self.clone(), Answer::Taken(vec![(norm(run), job)])));
                }
            }
        }
        items
    }
}

async fn create(store: &dyn Store, jobs: &[NewJob]) -> Vec<Item> {
    let created = store.create_jobs(jobs).await;
    let answers = each(jobs.len(), created, Answer::Created);
    let item = |(new, answer): (&NewJob, _)| {
        let call = Call::Create(vec![new.clone()]);
        (About::Job(new.job.id), call, answer)
    };
    jobs.iter().zip(answers).map(item).collect()
}

async fn fire(store: &dyn Store, leases: &Leases, firings: &[Firing]) -> Vec<Item> {
    let fired = store.fire(leases, firings).await;
    let answers = each(firings.len(), fired, fired_of);
    let item = |(firing, answer): (&Firing, _)| {
        let call = Call::Fire(leases.clone(), vec![firing.clone()]);
        (About::Job(firing.job.id), call, answer)
    };
    firings.iter().zip(answers).map(item).collect()
}

async fn claim(store: &dyn Store, leases: &Leases, runs: &[Named]) -> Vec<Item> {
    let claimed = store.claim(leases, &claimed_names(runs)).await;
    let answers = each(runs.len(), claimed, claimed_of);
    let item = |(named, answer): (&Named, _)| {
        let call = Call::Claim(leases.clone(), vec![*named]);
        (About::Job(named.job), call, answer)
    };
    runs.iter().zip(answers).map(item).collect()
}

async fn settle(store: &dyn Store, by: PresenceId, settlements: &[Settlement]) -> Vec<Item> {
    let settled = store.settle(by, settlements).await;
    let mut answers = each(settlements.len(), settled, Answer::Settled);
    if answers.len() > 1 && answers.contains(&Answer::Fenced) {
        answers.fill(Answer::Unknown);
    }
    let item = |(settlement, answer): (&Settlement, _)| {
        let call = Call::Settle(by, vec![settlement.clone()]);
        (About::Job(settlement.run.job), call, answer)
    };
    settlements.iter().zip(answers).map(item).collect()
}

async fn mark(store: &dyn Store, by: PresenceId, runs: &[Named]) -> Vec<Item> {
    let marks: Vec<_> = runs.iter().map(|it| (it.run, it.due_at)).collect();
    let answer = one(store.mark_running(by, &marks).await, |()| Answer::Done);
    let item = |named: &Named| {
        let call = Call::Mark(by, vec![*named]);
        (About::Job(named.job), call, answer.clone())
    };
    runs.iter().map(item).collect()
}

async fn withdraw(
    store: &dyn Store,
    by: PresenceId,
    runs: &[(Named, bool)],
    now: Timestamp,
) -> Vec<Item> {
    let withdrawal = |(named, taken_back): &(Named, bool)| Withdrawal {
        run: named.run,
        taken_back: *taken_back,
    };
    let withdrawals: Vec<_> = runs.iter().map(withdrawal).collect();
    let answer = store.withdraw(by, &withdrawals, now).await;
    let answer = one(answer, |()| Answer::Done);
    let item = |(named, taken_back): &(Named, bool)| {
        let call = Call::Withdraw(by, vec![(*named, *taken_back)], now);
        (About::Job(named.job), call, answer.clone())
    };
    runs.iter().map(item).collect()
}

async fn read_runs(store: &dyn Store, job: JobId) -> Answer {
    let filter = RunFilter {
        job: Some(job),
        states: Vec::new(),
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: MANY,
    };
    one(
        store.list_runs(TenantId::DEFAULT, &filter, page).await,
        runs_of,
    )
}

/// Which version of the job a run was last held at says nothing once nobody holds it.
pub(super) fn norm(run: Run) -> Run {
    let free = run.claim.is_none() && (run.state.is_live() || run.state == RunState::Cancelled);
    let version = if free { Version::FIRST } else { run.version };
    Run { version, ..run }
}

fn runs_of(runs: Vec<Run>) -> Answer {
    Answer::Runs(runs.into_iter().map(norm).collect())
}

fn leased(leases: Leases) -> Answer {
    Answer::Leased(leases.epochs.into_iter().collect())
}

fn ended(mut presences: Vec<PresenceId>) -> Answer {
    presences.sort();
    Answer::Ended(presences)
}

fn changed_of(mut answer: JobChanged) -> Answer {
    if let JobChanged::Done { marked, .. } = &mut answer {
        marked.sort();
    }
    Answer::Changed(answer)
}

fn cancelled_of(answer: Cancelled) -> Answer {
    Answer::Cancelled(match answer {
        Cancelled::Done(run) => Cancelled::Done(Box::new(norm(*run))),
        Cancelled::Marked | Cancelled::Ended(_) | Cancelled::Missing => answer,
    })
}

/// Why something is refused is said in a store's own words.
fn fired_of(mut answer: Fired) -> Answer {
    if let Fired::Refused(why) = &mut answer {
        why.clear();
    }
    Answer::Fired(answer)
}

fn claimed_of(answer: Claimed) -> Answer {
    Answer::Claimed(match answer {
        Claimed::Ours(run, job) => Claimed::Ours(Box::new(norm(*run)), job),
        Claimed::Stale | Claimed::LeaseLost => answer,
    })
}
