//! Attempts that the outside has, and runs that replays want: from what is to happen to the call, and from the call to its
//! answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::shard::ShardSet;
use model::{
    Handed, JobState, Outcome, Progress, ReplayId, Report, Run, RunId, RunKind, Slot, Timestamp,
};

use super::calls::{Call, OutsideCall, PresenceCall};
use super::intents::wanted;
use super::ops::{By, OutsideOp};
use super::world::{World, pick};
use crate::conformance::at;
use crate::{
    HandOver, HandedEnd, Heartbeat, Lapse, Lapsing, LogAppend, QueueRun, Queued, Reported,
    StoreError,
};

/// Shorter and longer than most of what passes between two steps.
const SPANS: [u64; 4] = [1, 20, 300, 90_000];

fn span(number: u8) -> Duration {
    Duration::from_secs(SPANS[usize::from(number) % SPANS.len()])
}

fn progress(number: u8) -> Option<Progress> {
    match number {
        0 => Some(Progress::Share(0.25)),
        1 => Some(Progress::Text("so \"far\" ö".to_owned())),
        _ => None,
    }
}

fn report(number: u8) -> Report {
    let outcome = match number {
        0 => Outcome::Failed,
        1 => Outcome::Cancelled,
        2 => Outcome::TimedOut,
        _ => Outcome::Succeeded,
    };
    let report = Report::of(outcome).with_status(i32::from(number));
    report.with_output(Bytes::from_static(b"\0made"))
}

/// As the token says: the same for each attempt.
fn dispatched_at(run: &Run) -> Timestamp {
    run.due_at
        .plus(Duration::from_secs(u64::from(run.attempt.0)))
}

/// Whether the definition of a deleted job follows its calendars is a store's own affair: nobody fires by it any more.
fn without_deleted(ends: Result<Vec<HandedEnd>, StoreError>) -> Result<Vec<HandedEnd>, StoreError> {
    let mut ends = ends?;
    for end in &mut ends {
        if let HandedEnd::Done(ended) = end
            && let Some(job) = &ended.job
            && job.state == JobState::Deleted
        {
            ended.job = None;
        }
    }
    Ok(ends)
}

impl World {
    pub(super) async fn outside_call(&mut self, by: By, op: &OutsideOp) -> Call {
        let now = self.now();
        let call = match op {
            OutsideOp::HandOver { runs, fresh, spans } => {
                return self.hand_over(by, runs, *fresh, *spans).await;
            }
            OutsideOp::Heartbeat {
                runs,
                fresh,
                behind,
                says,
            } => {
                let beats = self.outside(runs, *fresh).await.into_iter();
                let beat = |run: Run| Heartbeat {
                    run: run.id,
                    attempt: run.attempt,
                    dispatched_at: dispatched_at(&run),
                    progress: progress(*says),
                    checkpoint: (*says == 3).then(|| Bytes::from_static(b"here\0")),
                };
                let now = now.minus(Duration::from_secs(u64::from(*behind)));
                OutsideCall::Heartbeat(beats.map(beat).collect(), now)
            }
            OutsideOp::Report { runs, fresh, end } => {
                let runs = self.outside(runs, *fresh).await.into_iter();
                let reported = |run: Run| Reported {
                    run: run.id,
                    attempt: run.attempt,
                    dispatched_at: dispatched_at(&run),
                    report: report(*end),
                    chance: 0.5,
                };
                OutsideCall::Report(runs.map(reported).collect(), now)
            }
            OutsideOp::Lapse { want, ahead, fresh } => {
                let up_to = now.plus(Duration::from_secs(u64::from(*ahead)));
                if *fresh {
                    let (handed, some) = (self.store.handed(), Lapsing::all(up_to, 3));
                    self.silent = handed.lapsing(&wanted(*want), some).await.unwrap();
                }
                let lapses = self.silent.iter().map(lapse).collect();
                OutsideCall::Lapse(self.leases(by).clone(), lapses, up_to)
            }
            OutsideOp::Append { runs, fresh } => {
                let runs = self.outside(runs, *fresh).await.into_iter();
                let append = |run: Run| LogAppend {
                    run: run.id,
                    attempt: run.attempt,
                    bytes: Bytes::from_static(b"a line\n"),
                };
                OutsideCall::Append(runs.map(append).collect())
            }
            OutsideOp::Queue {
                jobs,
                nonce,
                of_slot,
            } => OutsideCall::Queue(self.queued(jobs, *nonce, *of_slot).await),
        };
        Call::Outside(call)
    }

    async fn hand_over(
        &self,
        by: By,
        runs: &[u8],
        fresh: bool,
        (within, timeout): (u8, u8),
    ) -> Call {
        let by = self.leases(by).presence;
        let runs = self.held(by, runs, fresh).await.into_iter();
        let hand_over = |run: Run| HandOver {
            run: run.id,
            job: run.job,
            attempt: run.attempt,
            node: Arc::from("a"),
            dispatched_at: dispatched_at(&run),
            within: span(within),
            timeout: span(timeout),
        };
        let items: Vec<HandOver> = runs.map(hand_over).collect();
        if items.is_empty() {
            return Call::Nothing;
        }
        Call::Presence(by, PresenceCall::HandOver(items, self.now()))
    }

    /// Runs that the outside has, as they stand; or any, as they once were: some are still with a node.
    async fn outside(&self, numbers: &[u8], fresh: bool) -> Vec<Run> {
        if !fresh {
            return self.known(numbers);
        }
        let handed = self.store.handed();
        let all = handed
            .lapsing(&ShardSet::ALL, Lapsing::all(Timestamp::MAX, 1_000))
            .await;
        let mut all = all.unwrap();
        // Which of those that are trusted up to the same moment comes first is a store's own affair.
        all.sort_by_key(|it| it.run);
        let mut runs = Vec::new();
        for handed in pick(numbers, all) {
            runs.extend(self.read(handed.run).await);
        }
        runs
    }

    /// Replays of runs, or slots of the past that are to run after all.
    async fn queued(&mut self, numbers: &[u8], nonce: u8, of_slot: bool) -> Vec<QueueRun> {
        let replay = ReplayId::new(at(0), [nonce; 10]);
        let mut queued = BTreeMap::new();
        for number in numbers {
            let Some(job) = self.job(*number, true).await else {
                continue;
            };
            let since = job.created_at.plus(Duration::from_secs(u64::from(nonce)));
            let last = job.slot_last.unwrap_or(job.created_at);
            let from = last.minus(Duration::from_secs(u64::from(nonce) * 60));
            let slot = job.def.schedule.next_after(from).unwrap_or(Slot(from));
            // Nobody may want slots that follow from the ends of runs.
            let of_slot = of_slot && !job.def.schedule.after_completion();
            let (id, kind) = if of_slot {
                (RunId::for_slot(job.id, slot), RunKind::Slot)
            } else {
                let old = RunId::of_request(job.id, at(30), u64::from(nonce));
                (RunId::replayed(job.id, since, replay, old), RunKind::Replay)
            };
            let run = Run {
                slot: Some(slot),
                ..Run::of_request(&job, id, kind, self.now())
            };
            let wanted = QueueRun { run, replay, since };
            queued.insert(id, wanted);
        }
        queued.into_values().collect()
    }

    pub(super) async fn make_outside(&mut self, call: &OutsideCall, learn: bool) -> String {
        let store = self.store.clone();
        match call {
            OutsideCall::Heartbeat(beats, now) => {
                self.show(store.handed().heartbeat(beats, *now).await)
            }
            OutsideCall::Report(reports, now) => {
                let ends = store.handed().report(reports, *now).await;
                self.show(without_deleted(ends))
            }
            OutsideCall::Lapse(leases, lapses, now) => {
                let ends = store.handed().lapse(leases, lapses, *now).await;
                self.show(without_deleted(ends))
            }
            OutsideCall::Append(appends) => self.show(store.handed().append_log(appends).await),
            OutsideCall::Queue(runs) => {
                let queued = store.replays().queue_runs(runs).await;
                let inserted = |it: &Queued| match it {
                    Queued::Ready(run) | Queued::Waiting(run) => Some(*run),
                    Queued::Repeated
                    | Queued::Full
                    | Queued::Undecided
                    | Queued::Undivided
                    | Queued::Missing => None,
                };
                let runs: Vec<_> = queued.iter().flatten().filter_map(inserted).collect();
                self.learn_runs(&runs, learn).await;
                self.show(queued)
            }
        }
    }

    /// What is kept of attempts that the outside has or had.
    pub(super) async fn dump_outside(&self, all: &mut Vec<String>) {
        let handed = self.store.handed();
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        all.push(self.show(handed.get_handed(&runs).await));
        for (id, run) in &self.runs {
            all.push(self.show(handed.get_checkpoint(*id).await));
            all.push(self.show(handed.get_log(run.tenant, *id).await));
        }
    }
}

fn lapse(handed: &Handed) -> Lapse {
    Lapse {
        run: handed.run,
        job: handed.job,
        attempt: handed.attempt,
        until: handed.until.unwrap_or(Timestamp::MIN),
        chance: 0.5,
    }
}
