//! One round: a few jobs, a few nodes and clients, who all act at once; and what is left when they are done.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    BeatMark, Job, JobId, Outcome, PresenceId, Reason, Run, RunId, RunState, Shard, Timestamp,
    Verdict,
};
use tokio::sync::Barrier;

use super::actors::Actor;
use super::calls::{Answer, Call, MANY};
use super::chance::Chance;
use super::history::{Entry, Opening, Recorder};
use super::jobs::new_job;
use super::outside::reported;
use super::replay::{BEATS, SILENCE, TENANT};
use crate::conformance::{TestClock, node, settlement, someone};
use crate::{
    BoxError, Epoch, JobChange, Leases, NewJob, NodeStatus, Page, RunFilter, RunsOfChange, Store,
    StoreClock as _,
};

/// Presences that act from the start, and those that take over from one that ends.
const NODES: usize = 4;
const SPARES: usize = 2;
/// Who acts at once: two for some of the nodes, as a node has several duties.
const NODE_ACTORS: usize = 6;
const CLIENT_ACTORS: usize = 2;
/// The fewer jobs, the more meet at each.
const JOBS_MIN: usize = 2;
const JOBS_MAX: usize = 5;
const STEPS: usize = 8;

/// What is tried: every node has a way of its own to the store, if there are several.
pub(crate) struct Arena {
    stores: Vec<Arc<dyn Store>>,
    clock: TestClock,
    /// Dropped last: a folder, a server.
    _guard: Box<dyn Any + Send + Sync>,
}

impl Arena {
    pub(crate) fn new(
        stores: Vec<Arc<dyn Store>>,
        clock: TestClock,
        guard: impl Any + Send + Sync,
    ) -> Self {
        Self {
            stores,
            clock,
            _guard: Box::new(guard),
        }
    }

    fn store(&self, number: usize) -> Arc<dyn Store> {
        Arc::clone(&self.stores[number % self.stores.len()])
    }
}

/// What everyone on stage sees.
pub(super) struct Stage {
    pub recorder: Recorder,
    pub now: Timestamp,
    pub shards: ShardSet,
    /// Each node's presence, and the leases it thinks it has.
    pub nodes: Vec<Mutex<Leases>>,
    pub spares: Mutex<Vec<PresenceId>>,
    /// The last beat of each presence, as all this began.
    pub beats: Vec<LastBeat>,
    pub jobs: Vec<JobId>,
    /// Jobs and runs as someone read them, maybe long ago.
    pub known_jobs: Mutex<BTreeMap<JobId, Arc<Job>>>,
    pub known_runs: Mutex<BTreeMap<RunId, Run>>,
}

/// One round, over.
pub(super) struct Played {
    pub opening: Opening,
    pub planned: Vec<Arc<Job>>,
    pub entries: Vec<Entry>,
    pub left: BTreeMap<JobId, Leftover>,
}

/// What is left of a job.
#[derive(Default)]
pub(super) struct Leftover {
    pub job: Option<Job>,
    pub live: Vec<Run>,
    pub ended: Vec<Run>,
    pub slots: Vec<Run>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) async fn play(arena: &Arena, seed: u64) -> Result<Played, BoxError> {
    let mut chance = Chance(seed);
    let store = arena.store(0);
    let now = arena.clock.now().plus(SILENCE * BEATS as u32);
    let count = JOBS_MIN + chance.below(JOBS_MAX - JOBS_MIN + 1);
    let planned: Vec<Arc<Job>> = (0..count)
        .map(|_| Arc::new(new_job(&mut chance, now)))
        .collect();
    let (opening, nodes) = open(arena, &planned, &mut chance).await?;
    let joined = opening.presences.iter().map(|(presence, ..)| *presence);
    let mark = |heard: bool| {
        let silence = SILENCE * (BEATS as u32) * u32::from(!heard);
        BeatMark::at(arena.clock.uptime().saturating_sub(silence))
    };
    let beats = opening.presences.iter();
    let stage = Arc::new(Stage {
        recorder: Recorder::default(),
        now,
        shards: planned.iter().map(|job| job.shard()).collect(),
        nodes: nodes.into_iter().map(Mutex::new).collect(),
        spares: Mutex::new(joined.skip(NODES).collect()),
        beats: beats.map(|(id, _, heard)| (*id, mark(*heard))).collect(),
        jobs: planned.iter().map(|job| job.id).collect(),
        known_jobs: Mutex::new(planned.iter().map(|job| (job.id, job.clone())).collect()),
        known_runs: Mutex::default(),
    });
    let together = Arc::new(Barrier::new(NODE_ACTORS + CLIENT_ACTORS));
    let mut tasks = Vec::new();
    for number in 0..NODE_ACTORS + CLIENT_ACTORS {
        let node = (number < NODE_ACTORS).then_some(number % NODES);
        let store = arena.store(node.unwrap_or(number));
        let mut actor = Actor::new(stage.clone(), store, node, chance.next());
        let together = together.clone();
        tasks.push(tokio::spawn(async move {
            together.wait().await;
            for _ in 0..STEPS {
                actor.act().await?;
            }
            Ok::<_, crate::StoreError>(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    let left = read(&*store, &stage).await?;
    drain(&*store, &opening, &stage.jobs).await?;
    let stage = Arc::into_inner(stage).ok_or("someone is still on stage")?;
    Ok(Played {
        opening,
        planned,
        entries: stage.recorder.into_entries(),
        left,
    })
}

/// Everyone joins, all but one are heard, each has its share of the shards; most jobs are there.
async fn open(
    arena: &Arena,
    planned: &[Arc<Job>],
    chance: &mut Chance,
) -> Result<(Opening, Vec<Leases>), BoxError> {
    let store = arena.store(0);
    let silent = chance.percent(30).then_some(NODES - 1);
    let mut presences = Vec::new();
    for number in 0..NODES + SPARES {
        let of_node = planned.iter().enumerate();
        let of_node = of_node.filter(|(index, _)| index % NODES == number);
        let wanted: ShardSet = of_node.map(|(_, job)| job.shard()).collect();
        let heard = silent != Some(number);
        presences.push((store.join(&node("some")).await?, wanted, heard));
    }
    for _ in 0..BEATS {
        arena.clock.advance(SILENCE);
        for (presence, ..) in presences.iter().filter(|(.., heard)| *heard) {
            store.beat(*presence, &NodeStatus::default()).await?;
        }
    }
    let mut epochs: BTreeMap<Shard, Epoch> = BTreeMap::new();
    let mut nodes = Vec::new();
    for (presence, wanted, _) in &presences {
        let leases = store.lease(*presence, wanted).await?;
        epochs.extend(leases.epochs.iter().map(|(shard, epoch)| (*shard, *epoch)));
        nodes.push(leases);
    }
    nodes.truncate(NODES);
    let created = planned.iter().filter(|_| chance.percent(80));
    let jobs: Vec<Arc<Job>> = created.cloned().collect();
    let new = jobs.iter().map(|job| NewJob {
        job: job.clone(),
        idempotency: None,
    });
    store.create_jobs(&new.collect::<Vec<_>>()).await?;
    let opening = Opening {
        now: arena.clock.now(),
        uptime: BeatMark::at(arena.clock.uptime()),
        presences,
        epochs,
        jobs,
    };
    Ok((opening, nodes))
}

/// What is left, written down as answers too.
async fn read(store: &dyn Store, stage: &Stage) -> Result<BTreeMap<JobId, Leftover>, BoxError> {
    let mut left: BTreeMap<JobId, Leftover> = BTreeMap::new();
    for job in &stage.jobs {
        let of_job = left.entry(*job).or_default();
        for (_, answer) in stage.recorder.make(store, &Call::ReadJob(*job)).await {
            if let Answer::Job(job) = answer {
                of_job.job = job.map(|job| *job);
            }
        }
        for (_, answer) in stage.recorder.make(store, &Call::ReadSlots(*job)).await {
            if let Answer::Runs(runs) = answer {
                of_job.slots = runs;
            }
        }
        stage.recorder.make(store, &Call::ReadRuns(*job)).await;
        of_job.live = runs_of(store, Some(*job), true).await?;
        of_job.ended = runs_of(store, Some(*job), false).await?;
    }
    Ok(left)
}

/// Runs of a job, or of all: those that move or those that have ended.
pub(super) async fn runs_of(
    store: &dyn Store,
    job: Option<JobId>,
    live: bool,
) -> Result<Vec<Run>, crate::StoreError> {
    let states = RunState::ALL.into_iter();
    let filter = RunFilter {
        job,
        states: states.filter(|state| state.is_live() == live).collect(),
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: MANY,
    };
    store.list_runs(TENANT, &filter, page).await
}

/// Ends everything, so that the next round finds nothing to take. What cannot be ended is stuck.
async fn drain(store: &dyn Store, opening: &Opening, jobs: &[JobId]) -> Result<(), BoxError> {
    for (presence, ..) in &opening.presences {
        store.leave(*presence).await?;
    }
    let keeper = store.join(&node("keeper")).await?;
    for id in jobs {
        if let Some(job) = store.get_job(TENANT, *id).await? {
            let (after, skipped) = job.deleted(opening.now, &someone());
            let change = JobChange {
                before: Arc::new(job),
                after: Arc::new(after),
                skipped,
                runs: RunsOfChange::Cancel,
            };
            store.change_job(&change).await?;
        }
        let mut runs = runs_of(store, Some(*id), true).await?;
        for _ in 0..MANY {
            let Some(run) = runs.first() else { break };
            if run.claim == Some(PresenceId::OUTSIDE) {
                let report = reported(run, Outcome::Succeeded);
                store.handed().report(&[report], opening.now).await?;
            } else if run.claim.is_some() {
                let cancelled = settlement(run, Verdict::Cancel(Reason::Requested));
                store.settle(keeper, &[cancelled]).await?;
            } else {
                store.cancel_run(TENANT, run.id, opening.now).await?;
            }
            runs = runs_of(store, Some(*id), true).await?;
        }
        if let Some(run) = runs.first() {
            return Err(format!("a run that cannot be ended: {run:?}").into());
        }
    }
    store.leave(keeper).await?;
    Ok(())
}
