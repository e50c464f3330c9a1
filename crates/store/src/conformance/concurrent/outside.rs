//! Attempts that the outside has, and runs that replays want: calls item by item, and who makes them.

use std::sync::Arc;
use std::time::Duration;

use model::shard::ShardSet;
use model::{
    Handed, Job, JobId, Outcome, PresenceId, Progress, ReplayId, Report, Run, RunId, RunKind, Slot,
    Timestamp,
};

use super::actors::Actor;
use super::calls::{About, Answer, Call, Item, MANY, each, norm};
use crate::conformance::at;
use crate::{
    EndedHanded, HandOver, HandedEnd, Heartbeat, Lapse, Lapsing, Leases, QueueRun, Reported, Store,
    StoreError,
};

const WITHIN: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(600);

pub(super) async fn hand_over(
    store: &dyn Store,
    by: PresenceId,
    items: &[HandOver],
    now: Timestamp,
) -> Vec<Item> {
    let answers = store.handed().hand_over(by, items, now).await;
    let mut answers = each(items.len(), answers, Answer::HandedOver);
    if answers.len() > 1 && answers.contains(&Answer::Fenced) {
        answers.fill(Answer::Unknown);
    }
    let item = |(it, answer): (&HandOver, _)| {
        let call = Call::HandOver(by, vec![it.clone()], now);
        (About::Job(it.job), call, answer)
    };
    items.iter().zip(answers).map(item).collect()
}

pub(super) async fn heartbeat(
    store: &dyn Store,
    items: &[(JobId, Heartbeat)],
    now: Timestamp,
) -> Vec<Item> {
    let beats: Vec<Heartbeat> = items.iter().map(|(_, beat)| beat.clone()).collect();
    let answers = store.handed().heartbeat(&beats, now).await;
    let answers = each(items.len(), answers, Answer::Beaten);
    let item = |(it, answer): (&(JobId, Heartbeat), _)| {
        let call = Call::Heartbeat(vec![it.clone()], now);
        (About::Job(it.0), call, answer)
    };
    items.iter().zip(answers).map(item).collect()
}

pub(super) async fn report(
    store: &dyn Store,
    items: &[(JobId, Reported)],
    now: Timestamp,
) -> Vec<Item> {
    let reports: Vec<Reported> = items.iter().map(|(_, it)| it.clone()).collect();
    let answers = store.handed().report(&reports, now).await;
    let answers = each(items.len(), answers, ended_of);
    let item = |(it, answer): (&(JobId, Reported), _)| {
        let call = Call::Report(vec![it.clone()], now);
        (About::Job(it.0), call, answer)
    };
    items.iter().zip(answers).map(item).collect()
}

pub(super) async fn lapse(
    store: &dyn Store,
    leases: &Leases,
    lapses: &[Lapse],
    now: Timestamp,
) -> Vec<Item> {
    let answers = store.handed().lapse(leases, lapses, now).await;
    let answers = each(lapses.len(), answers, ended_of);
    let item = |(it, answer): (&Lapse, _)| {
        let call = Call::Lapse(leases.clone(), vec![*it], now);
        (About::Job(it.job), call, answer)
    };
    lapses.iter().zip(answers).map(item).collect()
}

pub(super) async fn queue(store: &dyn Store, runs: &[QueueRun]) -> Vec<Item> {
    let answers = store.replays().queue_runs(runs).await;
    let answers = each(runs.len(), answers, Answer::Queued);
    let item = |(it, answer): (&QueueRun, _)| {
        let call = Call::Queue(vec![it.clone()]);
        (About::Job(it.run.job), call, answer)
    };
    runs.iter().zip(answers).map(item).collect()
}

fn ended_of(answer: HandedEnd) -> Answer {
    Answer::HandedEnd(with_run(answer, norm))
}

/// The same with the run that has ended in other words.
pub(super) fn with_run(answer: HandedEnd, change: impl FnOnce(Run) -> Run) -> HandedEnd {
    match answer {
        HandedEnd::Done(ended) => {
            let EndedHanded {
                mut settlement,
                settled,
                job,
            } = *ended;
            settlement.run = change(settlement.run);
            HandedEnd::Done(Box::new(EndedHanded {
                settlement,
                settled,
                job,
            }))
        }
        HandedEnd::Ended(_) | HandedEnd::Stale | HandedEnd::Missing => answer,
    }
}

/// As the token of its attempt says.
fn dispatched_at(run: &Run) -> Timestamp {
    run.due_at
        .plus(Duration::from_secs(u64::from(run.attempt.0)))
}

pub(super) fn reported(run: &Run, outcome: Outcome) -> Reported {
    Reported {
        run: run.id,
        attempt: run.attempt,
        dispatched_at: dispatched_at(run),
        report: Report::of(outcome),
        chance: 0.0,
    }
}

/// What nodes and targets do.
impl Actor {
    pub(super) async fn hand_over(&mut self, me: PresenceId) -> Result<Call, StoreError> {
        let held = self.runs(|run| run.claim == Some(me)).await?;
        let hand_over = |run: Run| HandOver {
            run: run.id,
            job: run.job,
            attempt: run.attempt,
            node: Arc::from("some"),
            dispatched_at: dispatched_at(&run),
            within: WITHIN,
            timeout: TIMEOUT,
        };
        let some = self.chance.some(&held, 2).into_iter();
        Ok(Call::HandOver(
            me,
            some.map(hand_over).collect(),
            self.stage.now,
        ))
    }

    /// What is silent, by a clock that is far enough ahead.
    pub(super) async fn lapse(&mut self, leases: Leases) -> Result<Call, StoreError> {
        let handed = self.store.handed();
        let silent = handed.lapsing(&self.stage.shards, Lapsing::all(Timestamp::MAX, MANY));
        let lapse = |it: Handed| Lapse {
            run: it.run,
            job: it.job,
            attempt: it.attempt,
            until: it.until.unwrap_or(Timestamp::MIN),
            chance: 0.0,
        };
        let lapses: Vec<Lapse> = silent.await?.into_iter().map(lapse).collect();
        let lapses = self.chance.some(&lapses, 2);
        let now = lapses.iter().map(|it| it.until).max();
        Ok(Call::Lapse(leases, lapses, now.unwrap_or(self.stage.now)))
    }

    /// A target that has runs says that it lives, or how they went. Some say so before the hand-over is written.
    pub(super) async fn say(&mut self, job: &Job) -> Result<Call, StoreError> {
        let (early, now) = (self.chance.percent(30), self.stage.now);
        let mut runs = self.runs_of(Some(job.id)).await?;
        runs.retain(|run| run.claim == Some(PresenceId::OUTSIDE) || (early && run.claim.is_some()));
        let runs = self.chance.some(&runs, 2).into_iter();
        if self.chance.percent(60) {
            let progress = self.chance.percent(50).then_some(Progress::Share(0.5));
            let beat = |run: Run| {
                let beat = Heartbeat {
                    run: run.id,
                    attempt: run.attempt,
                    dispatched_at: dispatched_at(&run),
                    progress: progress.clone(),
                    checkpoint: None,
                };
                (run.job, beat)
            };
            return Ok(Call::Heartbeat(runs.map(beat).collect(), now));
        }
        let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled];
        let outcome = self.chance.pick(&outcomes).unwrap_or(Outcome::Succeeded);
        let report = |run: Run| (run.job, reported(&run, outcome));
        Ok(Call::Report(runs.map(report).collect(), now))
    }

    /// A replay of something, or a slot of the past that is to run after all.
    pub(super) fn queue(&mut self, job: &Job) -> Call {
        let nonce = self.chance.below(3) as u64;
        let replay = ReplayId::new(at(0), [1; 10]);
        let since = job.created_at;
        let last = job.slot_last.unwrap_or(since);
        let from = last.minus(Duration::from_secs(nonce * 60 + 1));
        let slot = job.def.schedule.next_after(from).unwrap_or(Slot(from));
        // Nobody may want slots that follow from the ends of runs.
        let of_slot = self.chance.percent(60) && !job.def.schedule.after_completion();
        let (id, kind) = if of_slot {
            (RunId::for_slot(job.id, slot), RunKind::Slot)
        } else {
            let old = RunId::of_request(job.id, since, nonce);
            (RunId::replayed(job.id, since, replay, old), RunKind::Replay)
        };
        let run = Run {
            slot: Some(slot),
            ..Run::of_request(job, id, kind, self.stage.now)
        };
        Call::Queue(vec![QueueRun { run, replay, since }])
    }
}

/// What the outside has, as the reference knows it.
pub(super) async fn trusted(store: &dyn Store) -> Result<Vec<Handed>, StoreError> {
    let handed = store.handed();
    handed
        .lapsing(&ShardSet::ALL, Lapsing::all(Timestamp::MAX, MANY))
        .await
}
