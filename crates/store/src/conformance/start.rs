//! Start: runs that a person asked for.

use std::sync::Arc;

use bytes::Bytes;
use model::{Job, Mark, Overlap, Reason, Run, RunId, RunKind, RunState, TenantId, Trace, Verdict};

use super::{Kept, Subject, at, freed, job, job_with, settlement, slot, someone};
use crate::{Claimed, RunsOfChange, StartRun, Started};

/// A run by hand, asked for at second 30.
fn by_hand(job: &Job, nonce: u64) -> StartRun {
    let run = Run {
        id: RunId::of_request(job.id, at(30), nonce),
        kind: RunKind::Manual,
        slot: None,
        due_at: at(30),
        payload: Some(Bytes::from_static(b"[\"\0\"]")),
        ..Run::of_slot(job, slot(30))
    };
    StartRun { run, force: false }
}

pub async fn a_manual_run_is_inserted_ready_with_its_own_payload(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let start = by_hand(&job, 1);
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    assert_eq!(subject.run(start.run.id).await?, start.run);
    let counted = Job {
        manual_runs: 1,
        ..Job::clone(&job)
    };
    assert_eq!(
        *subject.job(job.id).await?,
        counted,
        "its slots go their own way"
    );
    assert_eq!(subject.due_run_ids(at(30)).await?, [start.run.id]);
    let claimed = subject.claim(&subject.leases, start.run.id).await?;
    let Claimed::Ours(run, _) = claimed else {
        return Err(format!("{claimed:?}").into());
    };
    subject
        .settle(settlement(&run, Verdict::Bury(Reason::Refused)))
        .await?;
    let dead = subject.run(run.id).await?;
    assert_eq!(
        (dead.payload, dead.kind),
        (start.run.payload, RunKind::Manual)
    );

    let again = by_hand(&job, 2);
    let replay = Run {
        kind: RunKind::Replay,
        slot: Some(slot(-60)),
        replay_of: Some(dead.id),
        payload: None,
        ..again.run
    };
    let start = StartRun {
        run: replay.clone(),
        force: false,
    };
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    assert_eq!(subject.run(replay.id).await?, replay);
    Ok(())
}

pub async fn a_run_keeps_the_trace_that_it_was_started_with(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let trace =
        Trace::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").map(Box::new);
    let mut start = by_hand(&job, 1);
    start.run.trace = trace.clone();
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    assert_eq!(subject.run(start.run.id).await?, start.run);
    // Through attempts that fail and one that is handed back, and whatever is read of it.
    let mut ended = 0;
    for verdict in [
        Verdict::RetryAt(at(40)),
        Verdict::Release,
        Verdict::RetryAt(at(50)),
    ] {
        let claimed = subject.claim(&subject.leases, start.run.id).await?;
        let Claimed::Ours(run, _) = claimed else {
            return Err(format!("{claimed:?}").into());
        };
        assert_eq!((&run.trace, run.attempts.len()), (&trace, ended));
        ended += usize::from(verdict != Verdict::Release);
        subject.settle(settlement(&run, verdict)).await?;
        assert_eq!(subject.run(run.id).await?.trace, trace);
    }
    let store = &subject.store;
    store.cancel_run(job.tenant, start.run.id, at(60)).await?;
    let over = subject.run(start.run.id).await?;
    assert_eq!((over.state, over.trace), (RunState::Cancelled, None));
    Ok(())
}

pub async fn a_run_is_started_once(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let start = by_hand(&job, 1);
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    assert_eq!(subject.store.start_run(&start).await?, Started::Repeated);
    subject.claim(&subject.leases, start.run.id).await?;
    let run = subject.run(start.run.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(subject.store.start_run(&start).await?, Started::Repeated);
    assert_eq!(subject.run(run.id).await?.state, RunState::Succeeded);
    assert_eq!(
        subject.store.start_run(&by_hand(&job, 2)).await?,
        Started::Ready
    );
    Ok(())
}

pub async fn a_job_that_is_gone_starts_nothing(subject: Subject) -> Kept {
    let never = by_hand(&job(1)?, 1);
    assert_eq!(subject.store.start_run(&never).await?, Started::Missing);
    let job = subject.put(job(2)?).await?;
    subject
        .change(&job, job.deleted(at(1), &someone()), RunsOfChange::Cancel)
        .await?;
    assert_eq!(
        subject.store.start_run(&by_hand(&job, 1)).await?,
        Started::Missing
    );
    let job = subject.put(super::job(3)?).await?;
    let mut start = by_hand(&job, 1);
    start.run.tenant = TenantId(uuid::Uuid::from_u128(7));
    assert_eq!(
        subject.store.start_run(&start).await?,
        Started::Missing,
        "another's job"
    );
    Ok(())
}

pub async fn a_paused_job_runs_by_hand(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    subject
        .change(
            &job,
            job.paused(at(1), None, &someone()),
            RunsOfChange::TakeBack,
        )
        .await?;
    assert_eq!(
        subject.store.start_run(&by_hand(&job, 1)).await?,
        Started::Ready
    );
    Ok(())
}

pub async fn a_manual_run_obeys_overlap_unless_forced(subject: Subject) -> Kept {
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::Skip)?)
        .await?;
    subject.claimed(job.id).await?;
    let start = by_hand(&job, 1);
    let refused = Started::Refused(Reason::Overlap);
    assert_eq!(subject.store.start_run(&start).await?, refused);
    let runs = subject.runs().await?;
    assert_eq!(
        runs.len(),
        1,
        "a request that was refused leaves nothing behind"
    );
    let start = StartRun {
        force: true,
        ..start
    };
    assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
    Ok(())
}

pub async fn a_manual_run_waits_its_turn(subject: Subject) -> Kept {
    let overlap = Overlap::QueueAll { max: 1 };
    let job = subject
        .put(job_with(1, |def| def.overlap = overlap)?)
        .await?;
    let held = subject.claimed(job.id).await?;
    let start = by_hand(&job, 1);
    assert_eq!(subject.store.start_run(&start).await?, Started::Waiting);
    let full = Started::Refused(Reason::QueueFull);
    assert_eq!(subject.store.start_run(&by_hand(&job, 2)).await?, full);
    let settled = subject.settle(settlement(&held, Verdict::Succeed)).await?;
    assert_eq!(settled, freed(start.run.id));
    Ok(())
}

pub async fn a_manual_run_replaces_like_any_other(subject: Subject) -> Kept {
    let overlap = Overlap::CancelRunning;
    let job: Arc<Job> = subject
        .put(job_with(1, |def| def.overlap = overlap)?)
        .await?;
    let held = subject.claimed(job.id).await?;
    assert_eq!(
        subject.store.start_run(&by_hand(&job, 1)).await?,
        Started::Waiting
    );
    assert_eq!(
        subject.store.start_run(&by_hand(&job, 2)).await?,
        Started::Waiting
    );
    let first = subject.run(by_hand(&job, 1).run.id).await?;
    assert_eq!(
        (first.state, first.reason),
        (RunState::Cancelled, Some(Reason::Replaced))
    );
    assert_eq!(first.settled_at, Some(at(30)));
    let mark = Some(Mark::Cancel(Reason::Replaced));
    assert_eq!(subject.run(held.id).await?.mark, mark);
    Ok(())
}
