//! Replays: what is wanted in bulk, how far it is, and the runs that come of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::{CatchUp, CatchUpPolicy};
use model::{
    Job, Overlap, Reason, ReplayId, Run, RunId, RunKind, RunMatch, RunState, TenantId, Timestamp,
    Verdict, limits,
};

use super::{Kept, Subject, at, firing, job, job_with, settlement, skip, slot};
use crate::{
    BoxError, Claimed, Fired, Keep, Page, Progress, QueueRun, Queued, Replay, ReplayCreated,
    ReplayState, ReplayWork, RunFilter, RunFind,
};

const ME: TenantId = TenantId::DEFAULT;
const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));
const ALL: Page<ReplayId> = Page {
    before: None,
    limit: 100,
};

fn id(number: u8) -> ReplayId {
    ReplayId::new(at(i64::from(number)), [number; 10])
}

/// A replay that says everything there is to say.
fn replay(number: u8) -> Replay {
    let find = RunFind {
        filter: RunFilter {
            states: vec![RunState::Dead, RunState::Cancelled],
            from: Some(at(-100)),
            to: Some(at(i64::from(number))),
            ..RunFilter::default()
        },
        matches: RunMatch {
            reasons: vec![Reason::Refused],
            error: Some("no\0\"ö".to_owned()),
            labels: vec![("team".to_owned(), "ö=ps".to_owned())],
            target: Some("api.example.com".to_owned()),
        },
    };
    Replay {
        id: id(number),
        tenant: ME,
        work: ReplayWork::Runs(find, Some(Bytes::from_static(b"[\"\0\"]"))),
        rate: 7,
        limit: 1_000,
        created_at: at(i64::from(number)),
        actor: Arc::from("Ana Ö."),
        progress: Progress {
            updated_at: at(i64::from(number)),
            ..Progress::default()
        },
    }
}

/// The same after its next step.
fn moved(replay: &Replay, state: ReplayState, now: i64) -> Replay {
    let progress = Progress {
        state,
        cursor: Some(RunId::least_at(at(5))),
        scanned: replay.progress.scanned + 3,
        started: replay.progress.started + 2,
        skipped: replay.progress.skipped + 1,
        note: Some("waits\0".to_owned()),
        ..replay.progress.clone()
    };
    replay.clone().moved(progress, at(now))
}

impl Subject {
    async fn replay(&self, replay: &Replay) -> Kept {
        let created = self.store.replays().create_replay(replay).await?;
        assert_eq!(created, ReplayCreated::Done);
        Ok(())
    }

    async fn queue(&self, runs: &[QueueRun]) -> Result<Vec<Queued>, BoxError> {
        Ok(self.store.replays().queue_runs(runs).await?)
    }

    /// What became of the slots of the first minutes.
    async fn became(&self, job: &Job) -> Result<Vec<Run>, BoxError> {
        let slots = self.store.list_slots(ME, job.id, at(0), at(1_000), 100);
        Ok(slots.await?)
    }

    /// Claims a run that waits for nobody, and ends it.
    async fn end(&self, run: RunId) -> Kept {
        let claimed = self.store.claim(&self.leases, &[run]).await?;
        let Some(Claimed::Ours(run, _)) = claimed.into_iter().next() else {
            return Err("it cannot be claimed".into());
        };
        self.settle(settlement(&run, Verdict::Succeed)).await?;
        Ok(())
    }
}

pub async fn a_replay_reads_back_whole(subject: Subject) -> Kept {
    let backfill = Replay {
        work: ReplayWork::Slots(job(1)?.id, at(-3_600), at(0)),
        ..replay(2)
    };
    for it in [&replay(1), &backfill] {
        subject.replay(it).await?;
        subject.replay(it).await?;
        let read = subject.store.replays().get_replay(ME, it.id).await?;
        assert_eq!(read.as_ref(), Some(it));
        let theirs = subject.store.replays().get_replay(STRANGER, it.id).await?;
        assert_eq!(theirs, None);
    }
    let replays = subject.store.replays();
    let newest_first = [backfill.clone(), replay(1)];
    assert_eq!(replays.list_replays(ME, ALL).await?, newest_first);
    assert_eq!(replays.list_replays(STRANGER, ALL).await?, []);
    let next = Page {
        before: Some(backfill.id),
        limit: 1,
    };
    assert_eq!(replays.list_replays(ME, next).await?, [replay(1)]);
    assert_eq!(replays.running_replays(9).await?, [replay(1), backfill]);
    assert_eq!(replays.running_replays(1).await?, [replay(1)]);
    let nobodys = Replay {
        tenant: STRANGER,
        ..replay(3)
    };
    assert_eq!(
        replays.create_replay(&nobodys).await?,
        ReplayCreated::NoTenant
    );
    Ok(())
}

pub async fn progress_is_written_over_the_step_before_it(subject: Subject) -> Kept {
    let replays = subject.store.replays();
    subject.replay(&replay(1)).await?;
    let first = moved(&replay(1), ReplayState::Running, 10);
    assert!(replays.move_replay(&first).await?);
    assert!(!replays.move_replay(&first).await?, "another was faster");
    assert_eq!(
        replays.get_replay(ME, first.id).await?.as_ref(),
        Some(&first)
    );
    let second = moved(&first, ReplayState::Done, 20);
    assert_eq!(second.progress.ended_at, Some(at(20)));
    assert!(replays.move_replay(&second).await?);
    let late = moved(&second, ReplayState::Running, 30);
    assert!(!replays.move_replay(&late).await?, "it is over");
    assert_eq!(replays.get_replay(ME, first.id).await?, Some(second));
    assert_eq!(replays.running_replays(9).await?, []);
    Ok(())
}

pub async fn a_cancelled_replay_goes_no_further(subject: Subject) -> Kept {
    let replays = subject.store.replays();
    subject.replay(&replay(1)).await?;
    assert_eq!(replays.cancel_replay(STRANGER, id(1), at(9)).await?, None);
    assert_eq!(replays.cancel_replay(ME, id(2), at(9)).await?, None);
    let cancelled = replays.cancel_replay(ME, id(1), at(9)).await?;
    let cancelled = cancelled.ok_or("it is not there")?;
    assert_eq!(cancelled.progress.state, ReplayState::Cancelled);
    assert_eq!(cancelled.progress.ended_at, Some(at(9)));
    let again = replays.cancel_replay(ME, id(1), at(19)).await?;
    assert_eq!(again.as_ref(), Some(&cancelled));
    let next = moved(&replay(1), ReplayState::Running, 20);
    assert!(!replays.move_replay(&next).await?);
    assert_eq!(replays.get_replay(ME, id(1)).await?, Some(cancelled));
    Ok(())
}

pub async fn so_many_replays_of_a_tenant_are_under_way_and_no_more(subject: Subject) -> Kept {
    let replays = subject.store.replays();
    let most = u8::try_from(limits::REPLAYS_MAX)?;
    for number in 1..=most {
        subject.replay(&replay(number)).await?;
    }
    let more = replay(most + 1);
    assert_eq!(replays.create_replay(&more).await?, ReplayCreated::Full);
    replays.cancel_replay(ME, id(1), at(9)).await?;
    subject.replay(&more).await
}

pub async fn replays_that_ended_are_forgotten_in_time(subject: Subject) -> Kept {
    let replays = subject.store.replays();
    for number in 1..=3 {
        subject.replay(&replay(number)).await?;
    }
    replays.cancel_replay(ME, id(1), at(100)).await?;
    replays.cancel_replay(ME, id(2), at(101)).await?;
    let keep = Keep {
        now: at(160),
        history: Duration::from_secs(1_000),
        finished: Duration::from_secs(60),
    };
    subject.store.retain(&keep).await?;
    let left = replays.list_replays(ME, ALL).await?;
    let left: Vec<ReplayId> = left.iter().map(|it| it.id).collect();
    assert_eq!(left, [id(3), id(2)]);
    Ok(())
}

/// A run that a replay asked for at second 500 makes of another.
fn again(job: &Job, number: u64) -> QueueRun {
    let old = RunId::of_request(job.id, at(30), number);
    let run = Run {
        slot: Some(slot(-60)),
        replay_of: Some(old),
        payload: Some(Bytes::from_static(b"[\"\0\"]")),
        ..Run::of_request(
            job,
            RunId::replayed(job.id, at(500), id(1), old),
            RunKind::Replay,
            at(501),
        )
    };
    queued(run)
}

fn queued(run: Run) -> QueueRun {
    QueueRun {
        run,
        replay: id(1),
        since: at(500),
    }
}

pub async fn a_queued_run_is_started_once(subject: Subject) -> Kept {
    let (one, two) = (subject.put(job(1)?).await?, subject.put(job(2)?).await?);
    let never = job(3)?;
    let batch = [
        again(&two, 1),
        again(&never, 1),
        again(&one, 1),
        again(&two, 2),
    ];
    let [first, _, third, fourth] = &batch;
    let expected = [
        Queued::Ready(first.run.id),
        Queued::Missing,
        Queued::Ready(third.run.id),
        Queued::Ready(fourth.run.id),
    ];
    assert_eq!(subject.queue(&batch).await?, expected);
    assert_eq!(subject.run(first.run.id).await?, first.run);
    assert_eq!(subject.job(two.id).await?.manual_runs, 2);
    subject.end(first.run.id).await?;
    let repeated = [
        Queued::Repeated,
        Queued::Missing,
        Queued::Repeated,
        Queued::Repeated,
    ];
    assert_eq!(subject.queue(&batch).await?, repeated);
    assert_eq!(subject.run(first.run.id).await?.state, RunState::Succeeded);
    assert_eq!(subject.queue(&[]).await?, []);
    Ok(())
}

pub async fn queued_runs_wait_for_one_another_up_to_a_bound(subject: Subject) -> Kept {
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::Skip)?)
        .await?;
    let most = limits::QUEUED_WAITING_MAX as u64;
    let batch: Vec<QueueRun> = (0..most + 3).map(|number| again(&job, number)).collect();
    let answers = subject.queue(&batch).await?;
    let (first, rest) = answers.split_first().ok_or("no answers")?;
    assert!(matches!(first, Queued::Ready(_)), "{first:?}");
    let (waiting, full) = rest.split_at(limits::QUEUED_WAITING_MAX);
    assert!(waiting.iter().all(|it| matches!(it, Queued::Waiting(_))));
    assert_eq!(full, [Queued::Full, Queued::Full]);
    let Queued::Ready(run) = first else {
        return Err("no run".into());
    };
    subject.end(*run).await?;
    let again = subject.queue(&batch).await?;
    let started = again.iter().filter(|it| matches!(it, Queued::Waiting(_)));
    assert_eq!(started.count(), 1);
    assert_eq!(again.last(), Some(&Queued::Full));
    Ok(())
}

/// A slot that is to be run after all.
fn backfilled(job: &Job, secs: i64) -> QueueRun {
    let name = RunId::for_slot(job.id, slot(secs));
    queued(Run {
        slot: Some(slot(secs)),
        ..Run::of_request(job, name, RunKind::Slot, at(501))
    })
}

/// Its slots from second 60 to 240 were missed at 290.
async fn missed(subject: &Subject) -> Result<Arc<Job>, BoxError> {
    let catch_up = CatchUp {
        policy: CatchUpPolicy::None,
        window: Duration::from_secs(3_600),
        max: 9,
    };
    let job = subject
        .put(job_with(1, |def| def.catch_up = catch_up)?)
        .await?;
    let batch = [firing(&job, at(290))];
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, [Fired::Skipped(Reason::Missed)]);
    Ok(job)
}

pub async fn a_slot_that_was_skipped_runs_under_its_own_name(subject: Subject) -> Kept {
    let job = missed(&subject).await?;
    let entry = |first, last| Run::skipped(&job, &skip(first, last, Reason::Missed), at(290));
    let middle = backfilled(&job, 180);
    let id = middle.run.id;
    assert_eq!(
        subject.queue(std::slice::from_ref(&middle)).await?,
        [Queued::Ready(id)]
    );
    let expected = [entry(60, 120), middle.run.clone(), entry(240, 240)];
    assert_eq!(subject.became(&job).await?, expected);
    assert_eq!(
        subject.queue(std::slice::from_ref(&middle)).await?,
        [Queued::Repeated]
    );
    subject.end(id).await?;
    assert_eq!(subject.queue(&[middle]).await?, [Queued::Repeated]);
    // The others one by one, in one batch: nothing is recorded of them any more, and nothing of theirs is lost.
    let rest = [60, 120, 240].map(|secs| backfilled(&job, secs));
    let ready = rest.clone().map(|it| Queued::Ready(it.run.id));
    assert_eq!(subject.queue(&rest).await?, ready);
    let slots = subject.became(&job).await?;
    let states: Vec<RunState> = slots.iter().map(|run| run.state).collect();
    let (ready, done) = (RunState::Ready, RunState::Succeeded);
    assert_eq!(states, [ready, ready, done, ready]);
    assert_eq!(subject.job(job.id).await?.next_slot, Some(slot(300)));
    Ok(())
}

pub async fn a_slot_that_ran_is_replayed_and_stays_as_it_was(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let dead = Verdict::Bury(Reason::Refused);
    subject.settle(settlement(&run, dead)).await?;
    let before = subject.run(run.id).await?;
    let wanted = backfilled(&job, 60);
    let answer = subject.queue(std::slice::from_ref(&wanted)).await?;
    let [Queued::Ready(replay)] = answer.as_slice() else {
        return Err(format!("{answer:?}").into());
    };
    let made = subject.run(*replay).await?;
    assert_eq!(
        (made.kind, made.replay_of, made.slot),
        (RunKind::Replay, Some(run.id), Some(slot(60)))
    );
    assert_eq!(subject.run(run.id).await?, before);
    assert_eq!(
        subject.queue(std::slice::from_ref(&wanted)).await?,
        [Queued::Repeated]
    );
    subject.end(*replay).await?;
    assert_eq!(
        subject.queue(std::slice::from_ref(&wanted)).await?,
        [Queued::Repeated]
    );
    // What has ended since it was asked for may be what it started itself.
    let earlier = QueueRun {
        since: Timestamp::MIN,
        ..wanted
    };
    assert_eq!(subject.queue(&[earlier]).await?, [Queued::Repeated]);
    Ok(())
}

pub async fn a_slot_that_is_not_decided_is_left_to_fire(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let early = [backfilled(&job, 60), backfilled(&job, 120)];
    let left = [Queued::Undecided, Queued::Undecided];
    assert_eq!(subject.queue(&early).await?, left);
    assert_eq!(subject.became(&job).await?, []);
    let fired = subject.claimed(job.id).await?;
    let answers = subject.queue(&early).await?;
    assert_eq!(answers, [Queued::Repeated, Queued::Undecided]);
    assert_eq!(subject.became(&job).await?, [fired]);
    // Before it was made there never was a slot: one may be wanted all the same.
    let before = backfilled(&job, -60);
    assert_eq!(
        subject.queue(std::slice::from_ref(&before)).await?,
        [Queued::Ready(before.run.id)]
    );
    Ok(())
}

pub async fn what_another_schedule_counted_is_not_divided(subject: Subject) -> Kept {
    let job = missed(&subject).await?;
    let mut def = model::Definition::clone(&job.def);
    def.schedule = super::every(30)?;
    let before = subject.job(job.id).await?;
    let edited = before.edited(None, def, at(295), &super::someone());
    let changed = subject.change(&before, edited, crate::RunsOfChange::TakeBack);
    let (after, _) = changed.await?;
    let slots = subject.became(&after).await?;
    let wanted = [backfilled(&after, 60), backfilled(&after, 150)];
    assert_eq!(
        subject.queue(&wanted).await?,
        [Queued::Undivided, Queued::Undivided]
    );
    assert_eq!(subject.became(&after).await?, slots);
    Ok(())
}
