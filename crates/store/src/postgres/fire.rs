//! Fire: slots become runs. Those that simply start take one statement together; what that leaves over, because
//! something lives, was decided before or is passed over, is looked at closely: locked, read, decided as the reference
//! store does, and written, one statement for each table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::job::Decision;
use model::policy::Admission;
use model::{
    Ask, AttemptNo, Job, JobId, JobState, Overlap, PresenceId, Reason, Run, RunId, RunState, Shard,
    Timestamp, Version,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::{Done, Fault, bad_row};
use super::pool::{Conn, Params};
use super::presence::shard_of;
use super::quick::{Columns, PlainColumns, QuickColumns, is_plain};
use super::rows::{EndedRow, LiveRow, maybe_word, word};
use super::scene::{Lock, Scene};
use super::store::PgStore;
use crate::{Fired, Firing, Leases, StoreError};

/// How a run that overlap lets in is born.
#[derive(Debug, Clone, Copy)]
pub(super) enum Birth {
    Moving,
    Waiting,
    Not(Reason),
}

/// Whether a firing has to know what lives of its job. A job that was edited may have been anything before.
pub(super) fn looks(job: &Job) -> bool {
    job.def.overlap != Overlap::Allow || is_exclusive(job)
}

/// Whether the end of a run may mean something to its job: others may wait for it, or the job rests for it. Where a
/// slot is skipped while a run lives, nothing ever waits.
pub(super) fn is_exclusive(job: &Job) -> bool {
    let waits = match job.def.overlap {
        Overlap::Allow | Overlap::Skip => false,
        Overlap::QueueOne | Overlap::QueueAll { .. } | Overlap::CancelRunning => true,
    };
    waits || job.def.schedule.after_completion() || job.version > Version::FIRST
}

/// Whether one statement may decide it: it starts, and passes nothing over.
fn is_quick(firing: &Firing) -> bool {
    let Firing { job, decision, .. } = firing;
    decision.start.is_some() && decision.passed.is_empty() && job.next_slot.is_some()
}

/// The name that a firing's answer is found by when it was made before.
pub(super) fn name_of(firing: &Firing) -> Option<RunId> {
    let Decision { passed, start, .. } = &firing.decision;
    let slot = start.or(passed.last().map(|skip| skip.slots.first))?;
    Some(RunId::for_slot(firing.job.id, slot))
}

impl PgStore {
    pub(super) async fn fire_all(
        &self,
        leases: &Leases,
        firings: &[Firing],
    ) -> Result<Vec<Fired>, StoreError> {
        self.now();
        let mut quick: Vec<&Firing> = firings.iter().filter(|it| is_quick(it)).collect();
        // In the order of ids, as others lock them.
        quick.sort_by_key(|firing| firing.job.id);
        let (plain, others): (Vec<_>, Vec<_>) = quick.into_iter().partition(|it| is_plain(it));
        let mut done: BTreeMap<JobId, Fired> = BTreeMap::new();
        for moved in [
            self.fire_quickly::<PlainColumns>(leases, &plain).await,
            self.fire_quickly::<QuickColumns>(leases, &others).await,
        ] {
            match moved {
                Ok(moved) => done.extend(moved),
                Err(fault) if fault.is_about_data() || fault.is_collision() => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        let rest: Vec<&Firing> = firings
            .iter()
            .filter(|firing| !done.contains_key(&firing.job.id))
            .collect();
        self.fire_slowly(leases, &rest, &mut done).await?;
        let answers = firings
            .iter()
            .map(|firing| done.get(&firing.job.id).cloned());
        Ok(answers
            .map(|answer| answer.unwrap_or(Fired::Stale))
            .collect())
    }

    /// One statement decides; answers those that it moved.
    async fn fire_quickly<C: Columns + Send + Sync>(
        &self,
        leases: &Leases,
        firings: &[&Firing],
    ) -> Done<Vec<(JobId, Fired)>> {
        if firings.is_empty() {
            return Ok(Vec::new());
        }
        let mut columns = C::default();
        let mut shards = BTreeSet::new();
        for firing in firings {
            shards.insert(firing.job.shard());
            columns.push(firing);
        }
        let (numbers, epochs) = epochs(leases, shards.iter().copied());
        let wanted = i64::try_from(shards.len()).unwrap_or(i64::MAX);
        let conn = self.pool.get().await?;
        let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            vec![&leases.presence.0, &numbers, &epochs, &wanted];
        params.extend(columns.params());
        let rows = fire_held(&conn, leases, &columns, &params).await?;
        let moved = ids(&rows)?;
        let answer = |firing: &&Firing| {
            let id = name_of(firing).filter(|id| moved.contains(id))?;
            let fired = match firing.claim {
                true => Fired::Claimed(id),
                false => Fired::Ready(id),
            };
            Some((firing.job.id, fired))
        };
        Ok(firings.iter().filter_map(answer).collect())
    }

    /// A batch that PostgreSQL refuses for its data is halved until the bad one stands alone.
    async fn fire_slowly(
        &self,
        leases: &Leases,
        firings: &[&Firing],
        done: &mut BTreeMap<JobId, Fired>,
    ) -> Result<(), StoreError> {
        let mut batches = vec![firings];
        while let Some(batch) = batches.pop().filter(|batch| !batch.is_empty()) {
            let mut tries = 0;
            let fired = loop {
                match self.fire_closely(leases, batch).await {
                    Err(fault) if self.again(&fault, tries) => tries += 1,
                    fired => break fired,
                }
            };
            match (fired, batch) {
                (Ok(fired), _) => {
                    done.extend(batch.iter().map(|firing| firing.job.id).zip(fired));
                }
                (Err(fault), [one]) if fault.is_about_data() => {
                    let why = StoreError::from(fault).to_string();
                    done.insert(one.job.id, Fired::Refused(why));
                }
                (Err(fault), _) if fault.is_about_data() => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                }
                (Err(fault), _) => return Err(fault.into()),
            }
        }
        Ok(())
    }

    async fn fire_closely(&self, leases: &Leases, firings: &[&Firing]) -> Done<Vec<Fired>> {
        let conn = self.pool.begin().await?;
        let Some((no, _)) = self.hold(&conn, leases.presence).await? else {
            return Ok(firings.iter().map(|_| Fired::LeaseLost).collect());
        };
        let mut look = Look::load(&conn, leases, no, firings).await?;
        let mut answers = Vec::with_capacity(firings.len());
        for firing in firings {
            answers.push(look.fire(leases.presence, firing)?);
        }
        look.scene.writes.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }
}

/// Three or four statements under way at once. The presence is held by one of its own, because a statement sees what was
/// so when it began: one that waited for a lease to be given up would still see it held.
async fn fire_held<C: Columns>(
    conn: &Conn,
    leases: &Leases,
    columns: &C,
    params: &Params<'_>,
) -> Done<Vec<Row>> {
    let hold = conn.prepare(include_str!("sql/fire_hold.sql")).await?;
    let fire = conn.prepare(C::SQL).await?;
    let me: &Params<'_> = &[&leases.presence.0];
    if !columns.look() {
        conn.begin()?;
        let (_, rows, ()) = tokio::try_join!(
            biased;
            conn.ask(&hold, me),
            conn.ask(&fire, params),
            conn.commit(),
        )?;
        return Ok(rows);
    }
    let alone = conn.prepare(include_str!("sql/fire_alone.sql")).await?;
    let names = columns.names();
    conn.begin()?;
    let (_, rows, _, ()) = tokio::try_join!(
        biased;
        conn.ask(&hold, me),
        conn.ask(&fire, params),
        conn.ask(&alone, &names),
        conn.commit(),
    )?;
    Ok(rows)
}

/// The leases on some shards as parameters; one that is not there has an epoch that never was.
pub(super) fn epochs(leases: &Leases, shards: impl Iterator<Item = Shard>) -> (Vec<i16>, Vec<i64>) {
    let epoch = |shard| {
        let epoch = leases.epoch(shard).map(|epoch| i64::try_from(epoch.0));
        epoch.and_then(Result::ok).unwrap_or(-1)
    };
    shards
        .map(|shard| (i16::from(shard.0), epoch(shard)))
        .unzip()
}

/// Which of these shards a presence has.
pub(super) async fn held(
    conn: &Conn,
    leases: &Leases,
    shards: &BTreeSet<Shard>,
) -> Done<BTreeSet<Shard>> {
    let (numbers, epochs) = epochs(leases, shards.iter().copied());
    let rows = conn
        .rows(
            include_str!("sql/held.sql"),
            &[&leases.presence.0, &numbers, &epochs],
        )
        .await?;
    let mut held = BTreeSet::new();
    for row in &rows {
        held.insert(shard_of(row.try_get(0)?));
    }
    Ok(held)
}

/// Everything that decides a batch.
struct Look {
    scene: Scene,
    no: i32,
    held: BTreeSet<Shard>,
    /// What lives, and what has ended, under the names that firings are found by.
    live: BTreeMap<RunId, LiveRow>,
    ended: BTreeMap<RunId, (RunState, Option<Reason>)>,
}

impl Look {
    async fn load(conn: &Conn, leases: &Leases, no: i32, firings: &[&Firing]) -> Done<Self> {
        let shards = firings.iter().map(|firing| firing.job.shard()).collect();
        let held = held(conn, leases, &shards).await?;
        let ids: Vec<Uuid> = firings.iter().map(|firing| firing.job.id.0).collect();
        let looking = firings.iter().filter(|it| looks(&it.job));
        let looking: Vec<Uuid> = looking.map(|firing| firing.job.id.0).collect();
        let replaces = |firing: &&Firing| firing.job.def.overlap == Overlap::CancelRunning;
        let lock = match firings.iter().any(replaces) {
            true => Lock::JobsAndRuns,
            false => Lock::Jobs,
        };
        let mut scene = Scene::load_some(conn, &ids, &looking, lock).await?;
        let names: Vec<Uuid> = firings
            .iter()
            .filter_map(|it| Some(name_of(it)?.0))
            .collect();
        let live = live_named(conn, &names).await?;
        // Some slots of an edited job may have been dispatched before the edit could take them back.
        let edited = firings.iter().filter(|it| it.job.version > Version::FIRST);
        let passed = edited.map(|it| (it.job.id, it.decision.passed.as_slice()));
        scene.read_ran_within(conn, passed).await?;
        for firing in firings {
            let narrow = scene.jobs.get(&firing.job.id);
            if narrow.is_some_and(|narrow| narrow.version == firing.job.version) {
                scene.full.insert(firing.job.id, Job::clone(&firing.job));
            }
        }
        let mut look = Self {
            scene,
            no,
            held,
            live,
            ended: BTreeMap::new(),
        };
        let doubtful = firings
            .iter()
            .filter(|it| it.job.version > Version::FIRST || look.standing(it).is_none());
        let doubtful: Vec<Uuid> = doubtful.filter_map(|it| Some(name_of(it)?.0)).collect();
        look.ended = ended_named(conn, &doubtful).await?;
        Ok(look)
    }

    /// The job, if it is where the firing saw it.
    fn standing(&self, firing: &Firing) -> Option<Job> {
        let job = self.scene.job(firing.job.id)?;
        let unmoved = job.next_slot == firing.job.next_slot && job.next_slot.is_some();
        (unmoved && job.state == JobState::Active).then_some(job)
    }

    fn fire(&mut self, presence: PresenceId, firing: &Firing) -> Done<Fired> {
        if !self.held.contains(&firing.job.shard()) {
            return Ok(Fired::LeaseLost);
        }
        let Some(job) = self.standing(firing) else {
            return Ok(self.fired_before(presence, firing));
        };
        let decision = &firing.decision;
        let Some(slot) = decision.start else {
            self.decide(&job, decision, false)?;
            return Ok(match decision.passed.last() {
                Some(skip) => Fired::Skipped(skip.reason),
                None => Fired::Decided,
            });
        };
        let run = Run::of_slot(&job, slot);
        if job.version > Version::FIRST && self.was_decided(run.id) {
            self.decide(&job, decision, false)?;
            return Ok(Fired::Decided);
        }
        if self.live.contains_key(&run.id) {
            return Ok(Fired::Refused(format!("{} is alive already", run.id)));
        }
        let overlap = job.def.overlap.admit(self.scene.living(job.id));
        if overlap.is_said_when_due() && decision.at < run.due_at {
            return Ok(Fired::Early);
        }
        let claim = firing.claim.then_some(presence);
        let fired = self.bear(&job, run, claim, decision)?;
        let born = !matches!(fired, Fired::Skipped(_));
        self.decide(&job, decision, born)?;
        Ok(fired)
    }

    /// An edit may have taken back an earlier slot than one that was dispatched: whoever has a run, alive or ended,
    /// is not decided again.
    fn was_decided(&self, run: RunId) -> bool {
        let ended = self.ended.get(&run);
        self.live.contains_key(&run) || ended.is_some_and(|(state, _)| *state != RunState::Skipped)
    }

    /// Moves the job onward, and writes down what it passed over.
    fn decide(&mut self, job: &Job, decision: &Decision, born: bool) -> Done<()> {
        self.scene.skip(job, job, &decision.passed, decision.at)?;
        let stands = job.standing_after(decision, born);
        self.scene.put_standing(&job.at_standing(stands));
        Ok(())
    }

    /// A slot's run comes to life, as the job's overlap has it.
    fn bear(
        &mut self,
        job: &Job,
        run: Run,
        claim: Option<PresenceId>,
        decision: &Decision,
    ) -> Done<Fired> {
        let id = run.id;
        let (claim, waiting, fired) = match admit(&mut self.scene, job, run.due_at) {
            Birth::Moving if claim.is_some() => (claim, false, Fired::Claimed(id)),
            Birth::Moving => (None, false, Fired::Ready(id)),
            Birth::Waiting => (None, true, Fired::Waiting(id)),
            Birth::Not(reason) => {
                self.scene.end(ended(Run {
                    state: RunState::Skipped,
                    reason: Some(reason),
                    settled_at: Some(decision.at),
                    by: Some(Arc::clone(&decision.by)),
                    ..run
                })?);
                return Ok(Fired::Skipped(reason));
            }
        };
        let run = Run {
            claim,
            waiting,
            ..run
        };
        let row = LiveRow::new(run, is_exclusive(job)).map_err(|error| bad_row(id, &error))?;
        self.scene.bear(LiveRow {
            no: claim.map(|_| self.no),
            ..row
        });
        Ok(fired)
    }

    /// The job is not where the firing saw it: either someone moved it, or this very firing did and its answer was
    /// lost.
    fn fired_before(&self, presence: PresenceId, firing: &Firing) -> Fired {
        let Decision { passed, start, .. } = &firing.decision;
        let Some(id) = name_of(firing) else {
            return Fired::Stale;
        };
        let live = self.live.get(&id).map(|row| &row.run);
        let live = live.filter(|run| run.attempt == AttemptNo::FIRST && start.is_some());
        if let Some(run) = live {
            return match run.claim {
                Some(holder) if holder == presence => Fired::Claimed(id),
                None if run.state == RunState::Ready && run.waiting => Fired::Waiting(id),
                None if run.state == RunState::Ready => Fired::Ready(id),
                Some(_) | None => Fired::Stale,
            };
        }
        let ended = self.ended.get(&id);
        let skipped = ended.filter(|(state, _)| *state == RunState::Skipped);
        let said = |reason| passed.last().is_some_and(|skip| skip.reason == reason);
        match skipped.and_then(|(_, reason)| *reason) {
            Some(reason) if start.is_some() || said(reason) => Fired::Skipped(reason),
            Some(_) | None => Fired::Stale,
        }
    }
}

/// Asks the job's overlap about a new run due at `due_at`, and does what it says to the others.
pub(super) fn admit(scene: &mut Scene, job: &Job, due_at: Timestamp) -> Birth {
    if job.def.overlap == Overlap::Allow {
        return Birth::Moving;
    }
    match job.def.overlap.admit(scene.living(job.id)) {
        Admission::Start => Birth::Moving,
        Admission::Wait => Birth::Waiting,
        Admission::Skip(reason) => Birth::Not(reason),
        Admission::Replace => {
            for row in scene.runs(job.id) {
                match row.run.claim {
                    None => {
                        scene.cancel(job.id, row.run.id, Reason::Replaced, due_at);
                    }
                    Some(_) => scene.ask(job.id, row.run.id, Ask::Cancel(Reason::Replaced)),
                }
            }
            match scene.living(job.id).moving {
                0 => Birth::Moving,
                _ => Birth::Waiting,
            }
        }
    }
}

pub(super) fn ended(run: Run) -> Done<EndedRow> {
    let id = run.id;
    EndedRow::new(run).map_err(|error| Fault::Store(bad_row(id, &error)))
}

/// The runs that a statement names in one array.
pub(super) fn ids(rows: &[Row]) -> Done<BTreeSet<RunId>> {
    let mut ids = BTreeSet::new();
    for row in rows {
        let named: Option<Vec<Uuid>> = row.try_get(0)?;
        ids.extend(named.into_iter().flatten().map(RunId));
    }
    Ok(ids)
}

/// Live runs by their names.
pub(super) async fn live_named(conn: &Conn, names: &[Uuid]) -> Done<BTreeMap<RunId, LiveRow>> {
    let mut live = BTreeMap::new();
    if names.is_empty() {
        return Ok(live);
    }
    let sql = include_str!("sql/get_run_live.sql");
    for row in &conn.rows(sql, &[&names]).await? {
        let row = LiveRow::read(row)?;
        live.insert(row.run.id, row);
    }
    Ok(live)
}

async fn ended_named(
    conn: &Conn,
    names: &[Uuid],
) -> Done<BTreeMap<RunId, (RunState, Option<Reason>)>> {
    let mut ended = BTreeMap::new();
    if names.is_empty() {
        return Ok(ended);
    }
    let sql = include_str!("sql/named_ended.sql");
    for row in &conn.rows(sql, &[&names]).await? {
        ended.insert(RunId(row.try_get(0)?), (word(row, 1)?, maybe_word(row, 2)?));
    }
    Ok(ended)
}
