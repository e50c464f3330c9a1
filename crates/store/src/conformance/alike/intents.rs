//! From what is to happen to the call that makes it happen, by what the world knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::limits::{OUTPUT_EARLIER_MAX, PAYLOAD_INLINE_MAX, RETRY_AFTER_MAX};
use model::retry::LostClaim;
use model::shard::ShardSet;
use model::view::Known;
use model::{
    Attempt, Exchange, Job, JobId, Marks, Outcome, PresenceId, Reason, Report, Run, RunId, RunKind,
    Shard, Slot, TenantId, Timestamp, Trace, Verdict, Wait, WaitReason,
};

use super::calls::{Call, JobCall, PresenceCall};
use super::ops::{By, Change, ClientOp, End, EngineOp, JobOp, Op, PresenceOp, TimeOp, Want};
use super::people::{edited, new_job, owner, renamed};
use super::world::{World, pick};
use crate::conformance::{at, firing, someone};
use crate::mem::MemStore;
use crate::{
    DueRoom, Firing, JobChange, Keep, LowWater, NodeStatus, Offset, RunsOfChange, Settlement,
    StartRun, Withdrawal,
};

impl World {
    pub(super) async fn call(&mut self, op: &Op) -> Call {
        match op {
            Op::Again => self.last.clone(),
            Op::Time(op) => {
                self.let_pass(*op).await;
                Call::Nothing
            }
            Op::Presence(by, op) => self.presence_call(*by, *op).await,
            Op::Job(op) => self.job_call(op).await,
            Op::Rule(op) => self.rule_call(*op).await,
            Op::Engine(by, op) => self.engine_call(*by, op).await,
            Op::Outside(by, op) => self.outside_call(*by, op).await,
            Op::Client(ClientOp::Start { job, nonce, force }) => {
                self.start(*job, *nonce, *force).await
            }
            Op::Client(ClientOp::Cancel { run, own }) => match self.known(&[*run]).first() {
                Some(run) if *own => Call::Cancel(run.tenant, run.id, self.now()),
                Some(run) => Call::Cancel(TenantId(uuid::Uuid::max()), run.id, self.now()),
                None => Call::Nothing,
            },
            Op::Client(ClientOp::Wake { run, own }) => match self.known(&[*run]).first() {
                Some(run) if *own => Call::WakeRun(run.tenant, run.id, self.now()),
                Some(run) => Call::WakeRun(TenantId(uuid::Uuid::max()), run.id, self.now()),
                None => Call::Nothing,
            },
            Op::Client(ClientOp::Slots {
                job,
                from,
                minutes,
                limit,
            }) => match self.job(*job, true).await {
                Some(job) => {
                    let last = job.slot_last.unwrap_or(at(0));
                    let from = last.minus(Duration::from_secs(u64::from(*from) * 30));
                    let to = from.plus(Duration::from_secs(u64::from(*minutes) * 60));
                    Call::Slots(job.tenant, job.id, from, to, usize::from(*limit))
                }
                None => Call::Nothing,
            },
        }
    }

    async fn let_pass(&mut self, op: TimeOp) {
        match op {
            TimeOp::Advance { millis } => {
                self.clock.advance(Duration::from_millis(u64::from(millis)));
            }
            TimeOp::StepWall { millis } => self.clock.step_wall(i64::from(millis)),
            TimeOp::Reopen => {
                let Some(reopen) = self.reopen.clone() else {
                    return;
                };
                // Something must stand in for the store while it is closed.
                let nothing = Arc::new(MemStore::new(Arc::new(self.clock.clone())));
                let store = std::mem::replace(&mut self.store, nothing);
                self.store = reopen(store).await.unwrap();
            }
        }
    }

    /// Whoever has not beaten since beats were last heard.
    fn fence(&self, by: PresenceId) -> PresenceCall {
        let others = self.heard.iter().filter(|(presence, _)| *presence != by);
        PresenceCall::Fence(others.copied().collect())
    }

    async fn presence_call(&mut self, by: By, op: PresenceOp) -> Call {
        let by = self.leases(by).presence;
        let call = match op {
            PresenceOp::Join => return Call::Join,
            PresenceOp::Beat(number) => PresenceCall::Beat(node_status(number)),
            PresenceOp::Lease(want) => PresenceCall::Lease(wanted(want)),
            PresenceOp::Leave => PresenceCall::Leave,
            PresenceOp::Fence => self.fence(by),
            PresenceOp::Outlive => {
                for _ in 0..7 {
                    self.clock.advance(Duration::from_secs(1));
                    // Whether it lives is for the call that follows to find out.
                    if let Ok(beat) = self.store.beat(by, &NodeStatus::default()).await {
                        let last = beat.living.iter().map(|peer| (peer.presence, peer.mark));
                        self.heard = last.collect();
                    }
                }
                self.fence(by)
            }
        };
        Call::Presence(by, call)
    }

    async fn job_call(&mut self, op: &JobOp) -> Call {
        let call = match op {
            JobOp::Create(numbers) => self.create(numbers).await,
            JobOp::Change {
                job,
                kind,
                fresh,
                ahead,
            } => match self.job(*job, *fresh).await {
                Some(job) => JobCall::Change(Box::new(self.change(job, *kind, *ahead).await)),
                None => return Call::Nothing,
            },
            JobOp::Park(job) => match self.job(*job, false).await {
                Some(job) => JobCall::Park(job.id, self.now()),
                None => return Call::Nothing,
            },
            JobOp::Retain => {
                let (day, hour) = (Duration::from_secs(86_400), Duration::from_secs(3_600));
                JobCall::Retain(Keep {
                    now: self.now(),
                    history: day,
                    finished: hour,
                })
            }
        };
        Call::Job(call)
    }

    /// Each number is one job, created once: ids are never used twice.
    async fn create(&mut self, numbers: &[u8]) -> JobCall {
        let mut batch = Vec::new();
        for number in numbers {
            if self.created.insert(*number) {
                let known = self.calendars(owner(*number)).await;
                let new = new_job(*number, &known, self.now());
                self.jobs.insert(*number, new.job.clone());
                batch.push(new);
            }
        }
        JobCall::Create(batch)
    }

    async fn change(&self, before: Arc<Job>, kind: Change, ahead: bool) -> JobChange {
        let last = before.slot_last.filter(|_| ahead);
        let now = last.map_or(self.now(), |last| last.minus(Duration::from_secs(1)));
        let ((after, skipped), runs) = match kind {
            Change::Pause => (
                before.paused(now, Some("why".to_owned()), &someone()),
                RunsOfChange::TakeBack,
            ),
            Change::Resume { catch_up } => (
                before.resumed(now, catch_up, &someone()),
                RunsOfChange::Keep,
            ),
            Change::Edit { overlap, schedule } => {
                let known = self.calendars(before.tenant).await;
                let edited = edited(&before, overlap, schedule, &known, now);
                (edited, RunsOfChange::TakeBack)
            }
            Change::Rename(key) => (renamed(&before, key, now), RunsOfChange::TakeBack),
            Change::Reschedule => (before.rescheduled(now, &someone()), RunsOfChange::TakeBack),
            Change::Delete => (before.deleted(now, &someone()), RunsOfChange::Cancel),
        };
        JobChange {
            before,
            after: Arc::new(after),
            skipped,
            runs,
        }
    }

    async fn start(&mut self, number: u8, nonce: u8, force: bool) -> Call {
        let Some(job) = self.job(number, false).await else {
            return Call::Nothing;
        };
        // From a handful of moments, so that some ids come twice.
        let requested_at = at(i64::from(nonce) * 30);
        let id = RunId::of_request(job.id, requested_at, u64::from(nonce));
        let inserted = Run::of_slot(&job, Slot(requested_at));
        let large = usize::from(nonce % 2) * PAYLOAD_INLINE_MAX;
        let payload = Some(Bytes::from(vec![nonce; large + 3]));
        let run = Run {
            id,
            kind: RunKind::Manual,
            slot: None,
            due_at: requested_at,
            payload,
            trace: trace(nonce),
            ..inserted
        };
        Call::Start(Box::new(StartRun { run, force }))
    }

    async fn engine_call(&mut self, by: By, op: &EngineOp) -> Call {
        let leases = self.leases(by).clone();
        let (by, now) = (leases.presence, self.now());
        let call = match op {
            EngineOp::Fire {
                jobs,
                claim,
                fresh,
                late,
            } => {
                return Call::Fire(leases, self.firings(by, jobs, *claim, *fresh, *late).await);
            }
            EngineOp::Claim { runs, fresh } => {
                return Call::Claim(leases, self.claimable(runs, *fresh).await);
            }
            EngineOp::ClaimDue {
                want,
                room,
                ahead,
                on_time,
                backlog,
            } => {
                let room = DueRoom {
                    on_time_from: now.minus(Duration::from_secs(u64::from(*on_time))),
                    up_to: now.plus(Duration::from_secs(u64::from(*ahead))),
                    room: room.map(usize::from),
                    backlog: backlog.map(usize::from),
                };
                PresenceCall::ClaimDue(wanted(*want), room)
            }
            EngineOp::Mark { runs, fresh } => {
                let runs = self.held(by, runs, *fresh).await;
                PresenceCall::Mark(runs.iter().map(|run| (run.id, now)).collect())
            }
            EngineOp::Withdraw { taken_back } => self.withdraw(by, *taken_back).await,
            EngineOp::Settle { runs, fresh, end } => {
                let runs = self.held(by, runs, *fresh).await;
                let settle = |run| settled(run, *end, now);
                PresenceCall::Settle(runs.into_iter().map(settle).collect())
            }
            EngineOp::Recover => self.recover().await,
            EngineOp::WakeDue { want, ahead, limit } => {
                let up_to = now.plus(Duration::from_secs(u64::from(*ahead)));
                return Call::WakeDue(wanted(*want), up_to, usize::from(*limit));
            }
            EngineOp::Wake { runs } => {
                let runs: BTreeSet<RunId> = self.known(runs).iter().map(|run| run.id).collect();
                return Call::Wake(runs.into_iter().collect(), now);
            }
        };
        Call::Presence(by, call)
    }

    /// Decides slots as if on time, late or ahead of it; whether they are due by the clock is nothing to a store.
    async fn firings(
        &mut self,
        by: PresenceId,
        numbers: &[u8],
        claim: bool,
        fresh: bool,
        late: i32,
    ) -> Vec<Firing> {
        let millis = Duration::from_millis(u64::from(late.unsigned_abs()));
        let mut firings: BTreeMap<_, Firing> = BTreeMap::new();
        for number in numbers {
            let Some(job) = self.job(*number, fresh).await else {
                continue;
            };
            let Some(due_at) = job.next_due_at() else {
                continue;
            };
            let decided_at = if late < 0 {
                due_at.minus(millis)
            } else {
                due_at.plus(millis)
            };
            let mut firing = Firing {
                claim,
                knows: self.knows(by, job.id, late).await,
                ..firing(&job, decided_at)
            };
            if late % 7 == 3 {
                firing.decision = firing.decision.over_quota();
            }
            firings.insert(job.id, firing);
        }
        firings.into_values().collect()
    }

    /// What a node knows of the runs that it holds: they wait, are under way, or have ended.
    async fn knows(&self, by: PresenceId, job: JobId, late: i32) -> Vec<Known> {
        let claims = self.store.claims(by, None, 1_000).await.unwrap_or_default();
        let mut known = Vec::new();
        for claim in claims {
            let run = self.store.get_run(TenantId::DEFAULT, claim.run).await;
            let run = run.ok().flatten().filter(|run| run.job == job);
            let dispatched_at = Some(claim.due_at).filter(|_| late % 3 > 0);
            known.extend(run.map(|run| {
                Known {
                    run: run.id,
                    dispatched_at,
                    ended_at: dispatched_at
                        .filter(|_| late % 3 == 2)
                        .map(|at| at.plus(Duration::from_secs(40))),
                }
            }));
        }
        known
    }

    async fn claimable(&self, numbers: &[u8], fresh: bool) -> Vec<RunId> {
        if !fresh {
            return self.known(numbers).iter().map(|run| run.id).collect();
        }
        let due = self
            .store
            .due_runs(&ShardSet::ALL, Timestamp::MAX, None, 1_000)
            .await
            .unwrap();
        pick(numbers, due).iter().map(|due| due.run).collect()
    }

    async fn withdraw(&self, by: PresenceId, taken_back: bool) -> PresenceCall {
        let claims = self.store.claims(by, None, 100).await.unwrap();
        let answers = claims.iter().map(|claim| Withdrawal {
            run: claim.run,
            taken_back,
        });
        PresenceCall::Withdraw(answers.collect(), self.now())
    }

    async fn recover(&self) -> PresenceCall {
        let now = self.now();
        let orphans = self.store.orphans(&ShardSet::ALL, 100).await.unwrap();
        let settlements = orphans.into_iter().map(|orphan| {
            let run = orphan.run;
            let verdict = LostClaim {
                attempt: run.attempt,
                lost: run.lost,
                due_at: run.due_at,
                from: run.could_start_at(),
                ended_at: orphan.ended_at,
                dispatched: false,
                delivery: orphan.job.def.delivery,
                window: orphan.job.def.catch_up.window,
            }
            .verdict(now);
            let attempt = (verdict != Verdict::Release).then(|| tried(&run, Outcome::Lost, now));
            Settlement {
                run,
                verdict,
                attempt,
            }
        });
        PresenceCall::Settle(settlements.collect())
    }
}

fn node_status(number: u8) -> NodeStatus {
    let offset = Offset {
        ahead: -i64::from(number),
        uncertainty: 1,
    };
    NodeStatus {
        schedules: number % 2 == 1,
        executes: number % 3 == 1,
        room: u32::from(number),
        lateness: 0,
        offset: (number > 4).then_some(offset),
        low_water: (number < 200).then_some(LowWater {
            at: Timestamp::from_millis(1_000 * i64::from(number)),
            taken: u32::from(number % 4),
        }),
    }
}

pub(super) fn wanted(want: Want) -> ShardSet {
    match want {
        Want::All => ShardSet::ALL,
        Want::Odd => Shard::all().filter(|shard| shard.0 % 2 == 1).collect(),
        Want::Nothing => ShardSet::default(),
    }
}

fn settled(run: Run, end: End, now: Timestamp) -> Settlement {
    let (verdict, outcome) = match end {
        End::Succeed => (Verdict::Succeed, Some(Outcome::Succeeded)),
        End::Retry { lost: true } => (Verdict::RetryAt(now), Some(Outcome::Lost)),
        End::Retry { lost: false } => (
            Verdict::RetryAt(now.plus(Duration::from_secs(5))),
            Some(Outcome::Failed),
        ),
        End::Astray => {
            let late = RETRY_AFTER_MAX + Duration::from_secs(60);
            (Verdict::RetryAt(now.plus(late)), Some(Outcome::Failed))
        }
        End::Bury => (Verdict::Bury(Reason::Refused), Some(Outcome::TimedOut)),
        End::Cancel => (Verdict::Cancel(Reason::Requested), Some(Outcome::Cancelled)),
        End::Release => (Verdict::Release, None),
        End::Wait(secs) => {
            // A moment of its own for each, so that it shows who has waited longest.
            let chance = Duration::from_millis(u64::from(run.id.as_bytes()[15]));
            let until = now.plus(Duration::from_secs(u64::from(secs)) + chance);
            (Verdict::Wait(Wait::until(WaitReason::Breaker, until)), None)
        }
    };
    let attempt = outcome.map(|outcome| tried(&run, outcome, now));
    Settlement {
        run,
        verdict,
        attempt,
    }
}

fn exchange() -> Exchange {
    let mut exchange = Exchange {
        peer: Some(([192, 0, 2, 7], 443).into()),
        ..Exchange::default()
    };
    exchange.times.total = Some(Duration::from_micros(1_502));
    exchange.keep_header("etag", b"\"a\"");
    exchange
}

/// An attempt with an output that is too long to be kept, and not a text.
fn tried(run: &Run, outcome: Outcome, now: Timestamp) -> Attempt {
    let output = Bytes::from([0, 255, b'a'].repeat(OUTPUT_EARLIER_MAX / 2));
    let report = Report {
        error: (outcome != Outcome::Succeeded).then(|| "so it is".to_owned()),
        truncated: outcome == Outcome::TimedOut,
        ..Report::of(outcome)
    };
    // Of some that succeeded nothing more is kept.
    let is_plain = outcome == Outcome::Succeeded && run.id.as_bytes()[15].is_multiple_of(2);
    let report = if outcome == Outcome::Lost || is_plain {
        report
    } else {
        report.with_exchange(exchange())
    };
    let dispatched_at = (outcome != Outcome::Lost).then_some(now);
    Attempt::new(
        run.attempt,
        dispatched_at,
        now,
        report.with_status(-1).with_output(output),
    )
    .made_by(&Arc::from("a"))
    .marked(Marks {
        late_by: (outcome == Outcome::TimedOut).then_some(Duration::from_millis(5)),
        long_by: (outcome == Outcome::Failed).then_some(Duration::from_millis(7)),
    })
}

/// Some have a trace.
fn trace(nonce: u8) -> Option<Box<Trace>> {
    let parent = u64::from(nonce) + 1;
    let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{parent:016x}-01");
    let trace = Trace::parse(&text).filter(|_| nonce.is_multiple_of(3));
    trace.map(Box::new)
}
