//! Fire: one decision per slot, by whoever holds the shard, written once however often it is sent.

use std::sync::Arc;
use std::time::Duration;

use model::policy::CatchUpPolicy;
use model::shard::ShardSet;
use model::{
    AttemptNo, Definition, Job, JobState, Overlap, Reason, Run, RunId, RunKind, RunState, TenantId,
    Verdict, Version,
};

use super::{Kept, Subject, at, every, firing, job, job_with, once, settlement, slot, someone};
use crate::{BoxError, Epoch, Fired, Firing, Leases, Page, RunFilter, RunsOfChange};

impl Subject {
    /// Every run of every kind, oldest first.
    pub(super) async fn runs(&self) -> Result<Vec<Run>, BoxError> {
        let page = Page {
            before: None,
            limit: 1_000,
        };
        let filter = RunFilter::default();
        let mut runs = self
            .store
            .list_runs(TenantId::DEFAULT, &filter, page)
            .await?;
        runs.reverse();
        Ok(runs)
    }

    /// The second presence takes every shard over from the first, in good order.
    pub(super) async fn hand_over(&self) -> Result<Leases, BoxError> {
        self.store
            .lease(self.presence(), &ShardSet::default())
            .await?;
        Ok(self
            .store
            .lease(self.other.presence, &ShardSet::ALL)
            .await?)
    }
}

pub async fn a_slot_fires_once(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let batch = [firing(&job, at(60))];
    let id = RunId::for_slot(job.id, slot(60));
    let first = store.fire(leases, &batch).await?;
    assert_eq!(first, [Fired::Claimed(id)]);
    assert_eq!(
        store.fire(leases, &batch).await?,
        first,
        "fired again: the same run, still ours"
    );
    let theirs = subject.hand_over().await?;
    assert_eq!(
        store.fire(&theirs, &batch).await?,
        [Fired::Stale],
        "nobody else gets it"
    );
    let runs = subject.runs().await?;
    assert_eq!(
        runs,
        [Run {
            claim: Some(leases.presence),
            ..Run::of_slot(&job, slot(60))
        }]
    );
    Ok(())
}

pub async fn a_repeated_fire_answers_the_same_run(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let open = subject.put(job(1)?).await?;
    let queued = subject
        .put(job_with(2, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    subject.claimed(queued.id).await?;
    let queued = subject.job(queued.id).await?;
    let batch = [
        Firing {
            claim: false,
            ..firing(&open, at(60))
        },
        firing(&queued, at(120)),
    ];
    let ready = Fired::Ready(RunId::for_slot(open.id, slot(60)));
    let waiting = Fired::Waiting(RunId::for_slot(queued.id, slot(120)));
    let expected = [ready, waiting];
    assert_eq!(store.fire(leases, &batch).await?, expected);
    let before = subject.runs().await?;
    assert_eq!(store.fire(leases, &batch).await?, expected);
    assert_eq!(subject.runs().await?, before);
    Ok(())
}

pub async fn a_repeated_fire_answers_the_same_skip(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let missed = subject
        .put(job_with(1, |def| {
            def.catch_up.policy = CatchUpPolicy::None
        })?)
        .await?;
    let skipping = subject
        .put(job_with(2, |def| def.overlap = Overlap::Skip)?)
        .await?;
    subject.claimed(skipping.id).await?;
    let skipping = subject.job(skipping.id).await?;
    let overlapping = Firing {
        knows: subject.knows(skipping.id).await?,
        ..firing(&skipping, at(120))
    };
    let batch = [firing(&missed, at(290)), overlapping];
    let expected = [
        Fired::Skipped(Reason::Missed),
        Fired::Skipped(Reason::Overlap),
    ];
    assert_eq!(store.fire(leases, &batch).await?, expected);
    let before = subject.runs().await?;
    assert_eq!(store.fire(leases, &batch).await?, expected);
    assert_eq!(subject.runs().await?, before);
    Ok(())
}

/// The first guard, the compare-and-swap, holds after the run has left the live set.
pub async fn a_slot_whose_run_has_ended_never_fires_again(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(
        store.fire(leases, &[firing(&job, at(60))]).await?,
        [Fired::Stale]
    );
    assert_eq!(subject.run(run.id).await?.state, RunState::Succeeded);
    Ok(())
}

pub async fn a_run_of_another_version_is_not_the_answer_to_a_firing(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let before = subject.put(job(1)?).await?;
    let def = Definition {
        payload: Some("other".into()),
        ..Definition::clone(&before.def)
    };
    let edit = before.edited(None, def, at(0), &someone());
    let (after, _) = subject.change(&before, edit, RunsOfChange::Keep).await?;
    let (of_before, of_after) = (firing(&before, at(60)), firing(&Arc::new(after), at(60)));
    let run = of_after.name().ok_or("it starts a run")?;
    for _ in 0..2 {
        let fired = store.fire(leases, std::slice::from_ref(&of_after)).await?;
        assert_eq!(fired, [Fired::Claimed(run)]);
        let fired = store.fire(leases, std::slice::from_ref(&of_before)).await?;
        assert_eq!(fired, [Fired::Stale]);
    }
    Ok(())
}

pub async fn a_run_that_another_holds_is_stale(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let run = subject.ready(job.id).await?;
    let theirs = subject.hand_over().await?;
    let again = [firing(&job, at(60))];
    assert_eq!(
        store.fire(&theirs, &again).await?,
        [Fired::Ready(run.id)],
        "nobody holds it yet"
    );
    store.claim(&theirs, &[run.id]).await?;
    assert_eq!(store.fire(&theirs, &again).await?, [Fired::Claimed(run.id)]);
    store.lease(theirs.presence, &ShardSet::default()).await?;
    let ours = store.lease(subject.presence(), &ShardSet::ALL).await?;
    assert_eq!(store.fire(&ours, &again).await?, [Fired::Stale]);
    Ok(())
}

pub async fn a_lapsed_lease_fires_nothing(subject: Subject) -> Kept {
    let Subject {
        store,
        leases,
        other,
        ..
    } = &subject;
    let job = subject.put(job(1)?).await?;
    let batch = [firing(&job, at(60))];
    assert_eq!(
        store.fire(other, &batch).await?,
        [Fired::LeaseLost],
        "never leased"
    );
    store.lease(leases.presence, &ShardSet::default()).await?;
    assert_eq!(
        store.fire(leases, &batch).await?,
        [Fired::LeaseLost],
        "given up"
    );
    let theirs = store.lease(other.presence, &ShardSet::ALL).await?;
    assert_eq!(
        store.fire(leases, &batch).await?,
        [Fired::LeaseLost],
        "taken by another"
    );
    assert_eq!(subject.runs().await?, []);
    assert_eq!(subject.job(job.id).await?, job);
    let fired = store.fire(&theirs, &batch).await?;
    assert!(matches!(fired.as_slice(), [Fired::Claimed(_)]), "{fired:?}");
    Ok(())
}

pub async fn an_old_epoch_fires_nothing(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    store.lease(leases.presence, &ShardSet::default()).await?;
    let again = store.lease(leases.presence, &ShardSet::ALL).await?;
    let batch = [firing(&job, at(60))];
    assert_eq!(store.fire(leases, &batch).await?, [Fired::LeaseLost]);
    let ahead = again
        .epochs
        .iter()
        .map(|(shard, epoch)| (*shard, Epoch(epoch.0 + 1)));
    let ahead = Leases {
        presence: again.presence,
        epochs: ahead.collect(),
        ..again
    };
    assert_eq!(
        store.fire(&ahead, &batch).await?,
        [Fired::LeaseLost],
        "nor does a made-up one"
    );
    assert_eq!(subject.runs().await?, []);
    let fired = store.fire(&again, &batch).await?;
    assert!(matches!(fired.as_slice(), [Fired::Claimed(_)]), "{fired:?}");
    Ok(())
}

pub async fn a_fenced_presence_fires_nothing(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let jobs = [subject.put(job(1)?).await?, subject.put(job(2)?).await?];
    subject.claimed(jobs[0].id).await?;
    subject.fence_first().await?;
    let batch = jobs.each_ref().map(|job| firing(job, at(60)));
    let fired = store.fire(leases, &batch).await?;
    assert_eq!(
        fired,
        [Fired::LeaseLost, Fired::LeaseLost],
        "not even what it had fired"
    );
    assert_eq!(subject.runs().await?.len(), 1);
    Ok(())
}

pub async fn an_edited_job_is_stale(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let def = Definition {
        lane: model::Lane::Batch,
        ..Definition::clone(&job.def)
    };
    let (edited, _) = subject
        .change(
            &job,
            job.edited(None, def, at(1), &someone()),
            RunsOfChange::TakeBack,
        )
        .await?;
    assert_eq!(
        edited.next_slot, job.next_slot,
        "the slot alone does not identify them"
    );
    let fired = subject
        .store
        .fire(&subject.leases, &[firing(&job, at(60))])
        .await?;
    assert_eq!(fired, [Fired::Stale]);
    assert_eq!(subject.claimed(job.id).await?.lane, model::Lane::Batch);
    Ok(())
}

pub async fn a_paused_job_is_stale(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    subject
        .change(
            &job,
            job.paused(at(1), None, &someone()),
            RunsOfChange::TakeBack,
        )
        .await?;
    let fired = subject
        .store
        .fire(&subject.leases, &[firing(&job, at(60))])
        .await?;
    assert_eq!(fired, [Fired::Stale]);
    assert_eq!(subject.runs().await?, []);
    Ok(())
}

pub async fn a_deleted_job_is_stale(subject: Subject) -> Kept {
    let never = Arc::new(job(2)?);
    let job = subject.put(job(1)?).await?;
    subject
        .change(&job, job.deleted(at(1), &someone()), RunsOfChange::Cancel)
        .await?;
    let batch = [firing(&job, at(60)), firing(&never, at(60))];
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, [Fired::Stale, Fired::Stale]);
    Ok(())
}

pub async fn a_firing_moves_its_job_onward(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let onward = Job {
        next_slot: Some(slot(120)),
        slot_last: Some(at(60)),
        ..Job::clone(&job)
    };
    assert_eq!(
        *stands, onward,
        "nothing else changes, its version least of all"
    );
    assert_eq!(
        (run.kind, run.state, run.attempt),
        (RunKind::Slot, RunState::Ready, AttemptNo(1))
    );
    assert_eq!(
        (run.slot, run.due_at, run.version),
        (Some(slot(60)), at(60), Version(1))
    );
    Ok(())
}

pub async fn a_last_slot_finishes_its_job(subject: Subject) -> Kept {
    let job = subject.put(once(1, 60)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.state, stands.state_at),
        (JobState::Finished, at(60))
    );
    assert_eq!((stands.next_slot, stands.slot_last), (None, Some(at(60))));
    let again = subject
        .store
        .fire(&subject.leases, &[firing(&job, at(60))])
        .await?;
    assert_eq!(again, [Fired::Claimed(run.id)]);
    Ok(())
}

pub async fn each_firing_of_a_batch_has_its_own_answer(subject: Subject) -> Kept {
    let mut jobs = Vec::new();
    for number in 1..=4 {
        jobs.push(subject.put(job(number)?).await?);
    }
    let mut batch: Vec<_> = jobs.iter().map(|job| firing(job, at(60))).collect();
    subject
        .change(
            &jobs[1],
            jobs[1].paused(at(1), None, &someone()),
            RunsOfChange::Keep,
        )
        .await?;
    batch[2].claim = false;
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    let id = |index: usize| RunId::for_slot(jobs[index].id, slot(60));
    let expected = [
        Fired::Claimed(id(0)),
        Fired::Stale,
        Fired::Ready(id(2)),
        Fired::Claimed(id(3)),
    ];
    assert_eq!(fired, expected);
    assert_eq!(subject.runs().await?.len(), 3);
    assert_eq!(subject.store.fire(&subject.leases, &[]).await?, []);
    Ok(())
}

/// The second guard. No decision of ours comes to this; if one does, it is an error, never ignored.
pub async fn a_run_that_is_alive_already_is_refused_and_nothing_written(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let astray = Job {
        next_slot: job.next_slot,
        slot_last: None,
        ..Job::clone(&stands)
    };
    let (astray, _) = subject
        .change(&stands, (astray, Vec::new()), RunsOfChange::Keep)
        .await?;
    let astray = Arc::new(astray);
    let fired = subject
        .store
        .fire(&subject.leases, &[firing(&astray, at(60))])
        .await?;
    assert!(matches!(fired.as_slice(), [Fired::Refused(_)]), "{fired:?}");
    assert_eq!(subject.job(job.id).await?, astray);
    assert_eq!(subject.runs().await?, [run]);
    Ok(())
}

/// An edit may take back a slot before one that was dispatched; the later one stays decided.
pub async fn a_decided_slot_of_an_edited_job_is_not_fired_again(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    for ended in [false, true] {
        let stands = subject.job(job.id).await?;
        let astray = Job {
            next_slot: job.next_slot,
            slot_last: None,
            state: JobState::Active,
            version: stands.version.next(),
            updated_at: at(59),
            ..Job::clone(&stands)
        };
        let (astray, _) = subject
            .change(&stands, (astray, Vec::new()), RunsOfChange::Keep)
            .await?;
        let batch = [firing(&Arc::new(astray), at(60))];
        let fired = subject.store.fire(&subject.leases, &batch).await?;
        assert_eq!(fired, [Fired::Decided], "ended: {ended}");
        assert_eq!(subject.job(job.id).await?.next_slot, stands.next_slot);
        assert_eq!(subject.runs().await?.len(), 1);
        if !ended {
            let settlement = settlement(&run, Verdict::Succeed);
            subject
                .store
                .settle(subject.leases.presence, &[settlement])
                .await?;
        }
    }
    Ok(())
}

pub async fn a_run_is_due_when_its_spread_says(subject: Subject) -> Kept {
    let spread = Duration::from_secs(30);
    let schedule = every(60)?;
    let job = subject
        .put(job_with(1, |def| {
            def.spread = spread;
            def.schedule = schedule;
        })?)
        .await?;
    let run = subject.claimed(job.id).await?;
    assert_eq!(
        (run.slot, run.due_at),
        (Some(slot(60)), job.due_at(slot(60)))
    );
    assert_ne!(run.due_at, at(60));
    Ok(())
}
