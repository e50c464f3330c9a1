//! Withdrawal: what pause, edit, delete and cancel do to runs that are alive. Only a holder knows what it
//! dispatched, so what is held is marked.

use std::sync::Arc;
use std::time::Duration;

use model::limits::{BEAT_EVERY, LEAD_MAX};
use model::{
    Definition, Job, JobState, Mark, Overlap, Reason, Run, RunId, RunKind, RunState, Stretch,
    TenantId, Verdict,
};

use super::{DONE, Kept, Subject, at, every, job, job_with, settlement, slot, someone};
use crate::{
    BoxError, Cancelled, Fired, NodeStatus, RunsOfChange, StartRun, StoreError, Withdrawal,
};

const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

impl Subject {
    /// Edits a job at a moment, to the definition it has.
    async fn edit(&self, id: model::JobId, secs: i64) -> Result<(Job, Vec<RunId>), BoxError> {
        let job = self.job(id).await?;
        let edited = job.edited(
            job.key.clone(),
            Definition::clone(&job.def),
            at(secs),
            &someone(),
        );
        self.change(&job, edited, RunsOfChange::TakeBack).await
    }

    async fn withdraw(&self, run: RunId, taken_back: bool) -> Kept {
        let answer = Withdrawal { run, taken_back };
        self.store
            .withdraw(self.presence(), &[answer], at(58))
            .await?;
        Ok(())
    }

    async fn is_gone(&self, run: RunId) -> Result<bool, BoxError> {
        Ok(self.store.get_run(TenantId::DEFAULT, run).await?.is_none())
    }
}

/// Due every second, as seen from second 57.
fn quick(number: u8) -> Result<Job, BoxError> {
    let schedule = every(1)?;
    let job = job_with(number, |def| def.schedule = schedule)?;
    let def = Definition::clone(&job.def);
    Ok(Job::new(job.id, job.tenant, None, def, at(57)))
}

pub async fn a_taken_back_run_is_decided_again(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    let (edited, marked) = subject.edit(job.id, 57).await?;
    assert_eq!((edited.next_slot, marked), (Some(slot(120)), vec![run.id]));
    let beat = subject
        .store
        .beat(subject.presence(), &NodeStatus::default())
        .await?;
    assert_eq!(beat.marks, [(run.id, Mark::TakeBack)]);
    subject.withdraw(run.id, true).await?;
    assert!(subject.is_gone(run.id).await?, "as if never fired");
    let stands = subject.job(job.id).await?;
    assert_eq!(*stands, edited.taken_back(slot(60), at(58), &[]));
    assert_eq!(stands.next_slot, Some(slot(60)));
    assert_eq!(subject.fire(job.id, true).await?, Fired::Claimed(run.id));
    subject.withdraw(run.id, true).await?;
    assert!(!subject.is_gone(run.id).await?, "the new one is not marked");
    Ok(())
}

pub async fn a_run_ahead_that_nobody_holds_goes_back_with_the_edit(subject: Subject) -> Kept {
    let job = subject.put(quick(1)?).await?;
    let runs = [subject.ready(job.id).await?, subject.ready(job.id).await?];
    let (edited, marked) = subject.edit(job.id, 57).await?;
    assert_eq!((edited.next_slot, marked), (Some(slot(58)), vec![]));
    assert_eq!(
        *subject.job(job.id).await?,
        edited,
        "the answer is the job as it stands"
    );
    for run in runs {
        assert!(subject.is_gone(run.id).await?);
    }
    Ok(())
}

pub async fn runs_go_back_in_any_order(subject: Subject) -> Kept {
    for (number, order) in [(1, [0, 1, 2]), (2, [2, 1, 0]), (3, [1, 2, 0])] {
        let job = subject.put(quick(number)?).await?;
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(subject.claimed(job.id).await?.id);
        }
        let (_, marked) = subject.edit(job.id, 57).await?;
        assert_eq!(marked, runs, "oldest first");
        for index in order {
            subject.withdraw(runs[index], true).await?;
        }
        assert_eq!(
            subject.job(job.id).await?.next_slot,
            Some(slot(58)),
            "{order:?}"
        );
    }
    Ok(())
}

pub async fn what_is_past_or_by_hand_or_retried_is_not_taken_back(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let past = subject.ready(job.id).await?;
    let running = subject.claimed(job.id).await?;
    subject
        .store
        .mark_running(subject.presence(), &[(running.id, at(1))])
        .await?;
    let retried = subject.claimed(job.id).await?;
    subject
        .settle(settlement(&retried, Verdict::RetryAt(at(300))))
        .await?;
    let (kind, slot) = (RunKind::Manual, None);
    let id = RunId::of_request(job.id, at(300), 1);
    let by_hand = Run {
        id,
        kind,
        slot,
        due_at: at(300),
        ..Run::of_slot(&job, super::slot(300))
    };
    subject
        .store
        .start_run(&StartRun {
            run: by_hand.clone(),
            force: false,
        })
        .await?;
    let before = subject.runs().await?;
    let (edited, marked) = subject.edit(job.id, 60).await?;
    assert_eq!((edited.next_slot, marked), (Some(super::slot(240)), vec![]));
    assert_eq!(subject.runs().await?, before);
    assert_eq!(
        past.slot,
        Some(super::slot(60)),
        "the moment of the edit is not after it"
    );
    Ok(())
}

/// Nobody fires so early: the clock has gone back, and what it was ahead of has happened.
pub async fn a_run_more_than_a_lead_ahead_is_not_taken_back(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let runs = [subject.ready(job.id).await?, subject.claimed(job.id).await?];
    let lead = LEAD_MAX + BEAT_EVERY;
    let stands = subject.job(job.id).await?;
    let before = at(60).minus(lead).minus(Duration::from_millis(1));
    let def = Definition::clone(&job.def);
    let edited = stands.edited(None, def, before, &someone());
    let (edited, marked) = subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    assert_eq!((edited.next_slot, marked), (Some(slot(180)), vec![]));
    assert_eq!(subject.runs().await?, runs);
    Ok(())
}

pub async fn a_run_that_had_left_is_too_late(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.edit(job.id, 57).await?;
    let stands = subject.job(job.id).await?;
    subject.withdraw(run.id, false).await?;
    assert_eq!(subject.run(run.id).await?.mark, Some(Mark::TooLate));
    assert_eq!(subject.job(job.id).await?, stands);
    subject.withdraw(run.id, true).await?;
    assert!(!subject.is_gone(run.id).await?, "what was said is said");
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, DONE);
    Ok(())
}

pub async fn only_the_holder_answers_for_a_run(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let (marked, unmarked) = (subject.claimed(job.id).await?, subject.ready(job.id).await?);
    subject.edit(job.id, 57).await?;
    let answers = [marked.id, unmarked.id].map(|run| Withdrawal {
        run,
        taken_back: true,
    });
    subject
        .store
        .withdraw(subject.other.presence, &answers, at(58))
        .await?;
    assert_eq!(subject.run(marked.id).await?.mark, Some(Mark::TakeBack));
    let never = RunId::for_slot(job.id, slot(9_999));
    subject.withdraw(never, true).await?;
    Ok(())
}

pub async fn a_fenced_presence_withdraws_nothing(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.edit(job.id, 57).await?;
    subject.fence_first().await?;
    let answer = Withdrawal {
        run: run.id,
        taken_back: true,
    };
    let withdrawn = subject
        .store
        .withdraw(subject.presence(), &[answer], at(58))
        .await;
    assert!(
        matches!(withdrawn, Err(StoreError::Fenced)),
        "{withdrawn:?}"
    );
    assert!(!subject.is_gone(run.id).await?);
    Ok(())
}

pub async fn a_paused_slot_goes_back_to_the_pause(subject: Subject) -> Kept {
    let job = subject.put(quick(1)?).await?;
    let held = subject.claimed(job.id).await?;
    let ready = subject.ready(job.id).await?;
    let stands = subject.job(job.id).await?;
    let paused = stands.paused(at(57), None, &someone());
    let (_, marked) = subject
        .change(&stands, paused, RunsOfChange::TakeBack)
        .await?;
    assert_eq!(marked, [held.id]);
    subject.withdraw(held.id, true).await?;
    assert!(subject.is_gone(ready.id).await? && subject.is_gone(held.id).await?);
    let (_, passed) = subject
        .job(job.id)
        .await?
        .resumed(at(60), false, &someone());
    let stretch = Stretch {
        first: slot(58),
        last: slot(60),
        count: 3,
    };
    let passed: Vec<_> = passed.iter().map(|skip| skip.slots).collect();
    assert_eq!(passed, [stretch]);
    Ok(())
}

pub async fn a_deleted_job_cancels_its_runs(subject: Subject) -> Kept {
    let job = subject
        .put(job_with(1, |def| {
            def.overlap = Overlap::QueueAll { max: 9 }
        })?)
        .await?;
    let held = subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    let waiting = RunId::for_slot(job.id, slot(120));
    let stands = subject.job(job.id).await?;
    let deleted = stands.deleted(at(100), &someone());
    let (gone, marked) = subject
        .change(&stands, deleted, RunsOfChange::Cancel)
        .await?;
    assert_eq!((gone.state, marked), (JobState::Deleted, vec![held.id]));
    let cancelled = subject.run(waiting).await?;
    let ended = (RunState::Cancelled, Some(Reason::JobDeleted), Some(at(100)));
    assert_eq!(
        (cancelled.state, cancelled.reason, cancelled.settled_at),
        ended
    );
    assert_eq!(cancelled.wait, None);
    assert_eq!(
        subject.run(held.id).await?.mark,
        Some(Mark::Cancel(Reason::JobDeleted))
    );
    Ok(())
}

pub async fn a_marked_run_of_a_deleted_job_ends_when_its_holder_says(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    subject
        .change(
            &stands,
            stands.deleted(at(100), &someone()),
            RunsOfChange::Cancel,
        )
        .await?;
    let settled = subject.settle(settlement(&held, Verdict::Succeed)).await?;
    assert_eq!(settled, DONE);
    assert_eq!(
        subject.run(held.id).await?.state,
        RunState::Succeeded,
        "it was too late"
    );
    Ok(())
}

pub async fn a_run_that_nobody_holds_is_cancelled_at_once(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    let first = subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    let waiting = subject.run(RunId::for_slot(job.id, slot(120))).await?;
    subject
        .settle(settlement(&first, Verdict::RetryAt(at(300))))
        .await?;
    let retrying = subject.run(first.id).await?;
    for run in [waiting, retrying] {
        let cancelled = store.cancel_run(TenantId::DEFAULT, run.id, at(90)).await?;
        let ended = Run {
            state: RunState::Cancelled,
            reason: Some(Reason::Requested),
            settled_at: Some(at(90)),
            wait: None,
            ..run
        };
        assert_eq!(cancelled, Cancelled::Done(Box::new(ended.clone())));
        assert_eq!(subject.run(ended.id).await?, ended);
    }
    assert_eq!(store.count_live().await?, 0);
    Ok(())
}

pub async fn a_held_run_is_marked_to_be_cancelled(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    assert_eq!(
        store.cancel_run(TenantId::DEFAULT, held.id, at(90)).await?,
        Cancelled::Marked
    );
    assert_eq!(
        store.cancel_run(TenantId::DEFAULT, held.id, at(91)).await?,
        Cancelled::Marked
    );
    let mark = Mark::Cancel(Reason::Requested);
    assert_eq!(
        store
            .beat(subject.presence(), &NodeStatus::default())
            .await?
            .marks,
        [(held.id, mark)]
    );
    subject
        .settle(settlement(&held, Verdict::Cancel(Reason::Requested)))
        .await?;
    let ended = subject.run(held.id).await?;
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Cancelled, Some(Reason::Requested))
    );
    assert_eq!(ended.mark, None);
    Ok(())
}

pub async fn a_cancel_is_never_weakened_to_a_take_back(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let held = subject.claimed(job.id).await?;
    subject
        .store
        .cancel_run(TenantId::DEFAULT, held.id, at(50))
        .await?;
    let (_, marked) = subject.edit(job.id, 57).await?;
    assert_eq!(marked, [held.id]);
    subject.withdraw(held.id, true).await?;
    assert_eq!(
        subject.run(held.id).await?.mark,
        Some(Mark::Cancel(Reason::Requested))
    );
    Ok(())
}

pub async fn an_ended_run_cannot_be_cancelled(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.claimed(job.id).await?;
    subject
        .settle(settlement(&run, Verdict::Bury(Reason::Refused)))
        .await?;
    let before = subject.run(run.id).await?;
    let cancelled = subject
        .store
        .cancel_run(TenantId::DEFAULT, run.id, at(90))
        .await?;
    assert_eq!(cancelled, Cancelled::Ended(RunState::Dead));
    assert_eq!(subject.run(run.id).await?, before);
    let never = RunId::for_slot(job.id, slot(9_999));
    let cancelled = subject
        .store
        .cancel_run(TenantId::DEFAULT, never, at(90))
        .await?;
    assert_eq!(cancelled, Cancelled::Missing);
    Ok(())
}

pub async fn a_tenant_cancels_only_its_own_runs(subject: Subject) -> Kept {
    let job: Arc<Job> = subject.put(job(1)?).await?;
    let ended = subject.claimed(job.id).await?;
    subject.settle(settlement(&ended, Verdict::Succeed)).await?;
    let live = [subject.ready(job.id).await?, subject.claimed(job.id).await?];
    for run in [&ended, &live[0], &live[1]] {
        let cancelled = subject.store.cancel_run(STRANGER, run.id, at(90)).await?;
        assert_eq!(cancelled, Cancelled::Missing);
    }
    assert_eq!(subject.run(live[0].id).await?, live[0]);
    assert_eq!(subject.run(live[1].id).await?, live[1]);
    Ok(())
}

impl Subject {
    /// Pauses a job at second 57 that has these runs ahead; all of them are marked.
    async fn paused_ahead_of(&self, runs: &[&Run]) -> Kept {
        let stands = self.job(runs[0].job).await?;
        let paused = stands.paused(at(57), None, &someone());
        let (_, marked) = self.change(&stands, paused, RunsOfChange::TakeBack).await?;
        assert!(marked.iter().eq(runs.iter().map(|run| &run.id)));
        Ok(())
    }

    /// Resumes it at second 70: where the pause's entries begin, and how many slots they have.
    async fn resumed(&self, id: model::JobId) -> Result<Vec<(i64, u64)>, BoxError> {
        let stands = self.job(id).await?;
        let resumed = stands.resumed(at(70), false, &someone());
        self.change(&stands, resumed, RunsOfChange::Keep).await?;
        let found = self
            .store
            .list_slots(TenantId::DEFAULT, id, at(0), at(100), 100);
        let skipped = found.await?.into_iter();
        let skipped = skipped.filter(|run| run.state == RunState::Skipped);
        let recorded = |run: Run| {
            let first = run.slot?.0.since(at(0)).as_secs() as i64;
            Some((first, run.stretch.map_or(1, |stretch| stretch.count)))
        };
        Ok(skipped.filter_map(recorded).collect())
    }
}

pub async fn what_ran_before_a_slot_that_comes_back_stays(subject: Subject) -> Kept {
    let job = subject.put(quick(1)?).await?;
    let first = subject.claimed(job.id).await?;
    let second = subject.claimed(job.id).await?;
    subject.paused_ahead_of(&[&first, &second]).await?;
    subject.withdraw(first.id, false).await?;
    subject.withdraw(second.id, true).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(stands.slot_last, Some(at(58)), "it is alive");
    let settled = settlement(&first, Verdict::Succeed);
    assert_eq!(subject.settle(settled).await?, DONE);
    assert_eq!(subject.resumed(job.id).await?, [(59, 12)]);
    assert_eq!(subject.run(first.id).await?.state, RunState::Succeeded);
    Ok(())
}

pub async fn what_ran_among_slots_that_come_back_stays(subject: Subject) -> Kept {
    let job = subject.put(quick(1)?).await?;
    let first = subject.claimed(job.id).await?;
    let second = subject.claimed(job.id).await?;
    let third = subject.claimed(job.id).await?;
    subject.paused_ahead_of(&[&first, &second, &third]).await?;
    subject.withdraw(first.id, true).await?;
    subject.withdraw(second.id, false).await?;
    let settled = settlement(&second, Verdict::Succeed);
    assert_eq!(subject.settle(settled).await?, DONE);
    subject.withdraw(third.id, true).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(
        stands.slot_last,
        Some(at(57)),
        "the first is to be recorded"
    );
    assert_eq!(subject.resumed(job.id).await?, [(58, 1), (60, 11)]);
    assert_eq!(subject.run(second.id).await?.state, RunState::Succeeded);
    Ok(())
}

pub async fn an_edit_decides_its_own_slots_around_those_that_ran(subject: Subject) -> Kept {
    let job = subject.put(quick(1)?).await?;
    let first = subject.claimed(job.id).await?;
    let second = subject.claimed(job.id).await?;
    let (_, marked) = subject.edit(job.id, 57).await?;
    assert_eq!(marked, [first.id, second.id]);
    subject.withdraw(first.id, false).await?;
    let settled = settlement(&first, Verdict::Succeed);
    assert_eq!(subject.settle(settled).await?, DONE);
    subject.withdraw(second.id, true).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.slot_last, stands.next_slot),
        (Some(at(58)), Some(slot(59)))
    );
    Ok(())
}
