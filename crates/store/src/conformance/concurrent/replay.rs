//! The same calls on the reference store, one after the other: what it would have answered.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use model::shard::ShardSet;
use model::{BeatMark, Job, JobId, PresenceId, Run, Shard, TenantId, Verdict};

use super::calls::{Answer, Call, MANY};
use super::history::Opening;
use super::outside::{trusted, with_run};
use crate::conformance::{TestClock, at, node};
use crate::mem::MemStore;
use crate::{
    Claimed, ClientStore, EngineStore, Epoch, Leases, NewJob, NodeStatus, Settlement,
    StoreClock as _, StoreError,
};

/// How long a presence must be silent to be fenced: so many beats of the others.
pub(super) const SILENCE: Duration = Duration::from_secs(2);
pub(super) const BEATS: usize = 2;

/// A store with one job, which speaks of presences and epochs as the store on trial does.
pub(super) struct Replay {
    store: MemStore,
    shard: Shard,
    /// Theirs and ours.
    presences: Vec<(PresenceId, PresenceId)>,
    /// What their epochs are ahead of ours.
    ahead: u64,
    /// How much later their clock is, in milliseconds, as beats are marked by it.
    later: i64,
}

impl Replay {
    /// As things stood before anything was recorded.
    pub(super) async fn new(opening: &Opening, job: JobId) -> Result<Self, StoreError> {
        let shard = Shard::of(job);
        let clock = TestClock::default();
        let silence = SILENCE * BEATS as u32;
        clock.step_wall(opening.now.minus(silence).since(at(0)).as_millis() as i64);
        let store = MemStore::new(Arc::new(clock.clone()));
        let mut presences = Vec::new();
        for (theirs, ..) in &opening.presences {
            presences.push((*theirs, store.join(&node("some")).await?));
        }
        for _ in 0..BEATS {
            clock.advance(SILENCE);
            for ((_, ours), (.., heard)) in presences.iter().zip(&opening.presences) {
                if *heard {
                    store.beat(*ours, &NodeStatus::default()).await?;
                }
            }
        }
        for ((_, ours), (_, wanted, _)) in presences.iter().zip(&opening.presences) {
            store.lease(*ours, &only(wanted, shard)).await?;
        }
        let jobs = opening.jobs.iter().filter(|it| it.id == job);
        let new = |job: &Arc<Job>| NewJob {
            job: job.clone(),
            idempotency: None,
        };
        let jobs: Vec<_> = jobs.map(new).collect();
        store.create_jobs(&jobs).await?;
        debug_assert_eq!(clock.now(), opening.now);
        let first = opening.epochs.get(&shard).map_or(1, |epoch| epoch.0);
        Ok(Self {
            store,
            shard,
            presences,
            ahead: first.saturating_sub(1),
            later: opening.uptime.0 - BeatMark::at(clock.uptime()).0,
        })
    }

    /// What the reference answers to an item. `answered` is what the store on trial did: which runs a take finds is
    /// a matter of chance, so the same ones are taken here, if they can be.
    pub(super) async fn make(&self, call: &Call, answered: Option<&Answer>) -> Answer {
        if let (Call::ClaimDue(by, _, up_to, _), Some(Answer::Taken(taken))) = (call, answered) {
            let wanted = taken.iter().map(|(run, _)| run.id).collect::<Vec<_>>();
            let by = self.ours(*by);
            let shards = only(&ShardSet::ALL, self.shard);
            let all = Call::ClaimDue(by, shards, *up_to, MANY)
                .make(&self.store)
                .await;
            let mut found = Vec::new();
            for (_, _, answer) in all {
                if let Answer::Taken(runs) = answer {
                    found.extend(runs);
                }
            }
            for (run, _) in found.iter().filter(|(run, _)| !wanted.contains(&run.id)) {
                self.put_back(by, run).await;
            }
            found.retain(|(run, _)| wanted.contains(&run.id));
            // Each lane by itself is a store's own affair.
            let place = |run: &Run| wanted.iter().position(|id| *id == run.id);
            found.sort_by_key(|(run, _)| place(run));
            return self.theirs(Answer::Taken(found));
        }
        let items = self.translated(call).make(&self.store).await;
        let answer = items.into_iter().next().map(|(.., answer)| answer);
        self.theirs(answer.unwrap_or(Answer::Done))
    }

    async fn put_back(&self, by: PresenceId, run: &Run) {
        let settlement = Settlement {
            run: run.clone(),
            verdict: Verdict::Release,
            attempt: None,
        };
        let call = Call::Settle(by, vec![settlement]);
        call.make(&self.store).await;
    }

    /// A number for all that later answers depend on, presences and leases apart.
    pub(super) async fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let jobs = self.store.all_jobs();
        format!(
            "{:?}{:?}{:?}{:?}",
            trusted(&self.store).await,
            jobs,
            self.store.live_runs(),
            self.store.all_runs()
        )
        .hash(&mut hasher);
        hasher.finish()
    }

    fn ours(&self, id: PresenceId) -> PresenceId {
        let found = self.presences.iter().find(|(theirs, _)| *theirs == id);
        found.map_or(id, |(_, ours)| *ours)
    }

    fn their(&self, id: PresenceId) -> PresenceId {
        let found = self.presences.iter().find(|(_, ours)| *ours == id);
        found.map_or(id, |(theirs, _)| *theirs)
    }

    fn our_leases(&self, leases: &Leases) -> Leases {
        let ours = |epoch: Epoch| Epoch(epoch.0.saturating_sub(self.ahead));
        let of_job = leases.epochs.iter().filter(|it| *it.0 == self.shard);
        let epochs: BTreeMap<_, _> = of_job.map(|it| (*it.0, ours(*it.1))).collect();
        Leases {
            presence: self.ours(leases.presence),
            epochs,
            ..leases.clone()
        }
    }

    /// Their call in our words.
    fn translated(&self, call: &Call) -> Call {
        match call.clone() {
            Call::Fire(leases, firings) => Call::Fire(self.our_leases(&leases), firings),
            Call::Claim(leases, runs) => Call::Claim(self.our_leases(&leases), runs),
            Call::Settle(by, settlements) => {
                let settlements = settlements.into_iter().map(|it| Settlement {
                    run: Run {
                        claim: it.run.claim.map(|claim| self.ours(claim)),
                        ..it.run
                    },
                    ..it
                });
                Call::Settle(self.ours(by), settlements.collect())
            }
            Call::ClaimDue(by, _, up_to, _) => {
                Call::ClaimDue(self.ours(by), ShardSet::default(), up_to, 0)
            }
            Call::Mark(by, runs) => Call::Mark(self.ours(by), runs),
            Call::HandOver(by, items, now) => Call::HandOver(self.ours(by), items, now),
            Call::Lapse(leases, items, now) => Call::Lapse(self.our_leases(&leases), items, now),
            Call::Withdraw(by, runs, now) => Call::Withdraw(self.ours(by), runs, now),
            Call::Lease(by, wanted) => Call::Lease(self.ours(by), only(&wanted, self.shard)),
            Call::Leave(by) => Call::Leave(self.ours(by)),
            Call::Beat(by) => Call::Beat(self.ours(by)),
            Call::Fence(by, (other, mark)) => {
                let mark = BeatMark(mark.0 - self.later);
                Call::Fence(self.ours(by), (self.ours(other), mark))
            }
            call @ (Call::Create(_)
            | Call::Change(_)
            | Call::Start(_)
            | Call::Cancel(..)
            | Call::Heartbeat(..)
            | Call::Report(..)
            | Call::Queue(_)
            | Call::ReadJob(_)
            | Call::ReadRuns(_)
            | Call::ReadSlots(_)) => call,
        }
    }

    /// Our answer in their words.
    fn theirs(&self, answer: Answer) -> Answer {
        let run = |run: Run| Run {
            claim: run.claim.map(|claim| self.their(claim)),
            ..run
        };
        match answer {
            Answer::Claimed(Claimed::Ours(ours, job)) => {
                Answer::Claimed(Claimed::Ours(Box::new(run(*ours)), job))
            }
            Answer::Taken(taken) => {
                Answer::Taken(taken.into_iter().map(|it| (run(it.0), it.1)).collect())
            }
            Answer::Runs(runs) => Answer::Runs(runs.into_iter().map(run).collect()),
            Answer::HandedEnd(end) => Answer::HandedEnd(with_run(end, run)),
            Answer::Leased(leases) => {
                let theirs = |epoch: Epoch| Epoch(epoch.0 + self.ahead);
                Answer::Leased(leases.into_iter().map(|it| (it.0, theirs(it.1))).collect())
            }
            Answer::Ended(ended) => {
                let mut ended: Vec<_> = ended.into_iter().map(|id| self.their(id)).collect();
                ended.sort();
                Answer::Ended(ended)
            }
            answer @ (Answer::Done
            | Answer::Fenced
            | Answer::Unknown
            | Answer::Failed(_)
            | Answer::Created(_)
            | Answer::Changed(_)
            | Answer::Started(_)
            | Answer::Cancelled(_)
            | Answer::Fired(_)
            | Answer::Claimed(Claimed::Stale | Claimed::LeaseLost)
            | Answer::Settled(_)
            | Answer::HandedOver(_)
            | Answer::Beaten(_)
            | Answer::Queued(_)
            | Answer::Job(_)) => answer,
        }
    }

    /// What of an answer is about this job.
    pub(super) fn narrowed(&self, answer: &Answer) -> Answer {
        match answer {
            Answer::Leased(leases) => {
                let of_job = leases.iter().filter(|it| it.0 == self.shard);
                Answer::Leased(of_job.copied().collect())
            }
            Answer::Done
            | Answer::Fenced
            | Answer::Unknown
            | Answer::Failed(_)
            | Answer::Created(_)
            | Answer::Changed(_)
            | Answer::Started(_)
            | Answer::Cancelled(_)
            | Answer::Fired(_)
            | Answer::Claimed(_)
            | Answer::Taken(_)
            | Answer::Settled(_)
            | Answer::HandedOver(_)
            | Answer::Beaten(_)
            | Answer::HandedEnd(_)
            | Answer::Queued(_)
            | Answer::Ended(_)
            | Answer::Job(_)
            | Answer::Runs(_) => answer.clone(),
        }
    }
}

fn only(wanted: &ShardSet, shard: Shard) -> ShardSet {
    let one = Some(shard).filter(|shard| wanted.contains(*shard));
    one.into_iter().collect()
}

/// Everything here is one tenant's.
pub(super) const TENANT: TenantId = TenantId::DEFAULT;
