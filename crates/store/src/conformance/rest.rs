//! Rest: what is done to a job while it rests, and what the end of its run makes of that.

use std::sync::Arc;
use std::time::Duration;

use model::schedule::Bounds;
use model::{Attempt, Definition, Job, JobState, Lane, Overlap, Schedule, TenantId, Verdict};

use super::completion::{resting, woken};
use super::{
    DONE, Kept, Subject, after_completion, at, every, job_with, settlement, slot, someone,
};
use crate::{JobChange, JobChanged, RunsOfChange, Withdrawal};

pub async fn an_edit_leaves_a_job_resting_while_its_run_lives(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    let schedule = after_completion(300)?;
    let (edited, _) = subject.edit_to(job.id, 60, schedule).await?;
    assert_eq!(*subject.job(job.id).await?, edited, "the answer says so");
    subject.rests(job.id).await?;
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, woken(at(361)), "as the new definition has it");
    subject.wakes(job.id, 361).await
}

pub async fn an_edit_of_anything_else_leaves_a_job_resting(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let def = Definition {
        lane: Lane::Batch,
        ..Definition::clone(&job.def)
    };
    let edited = stands.edited(None, def, at(61), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    subject.rests(job.id).await?;
    let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, woken(at(121)));
    let stands = subject.job(job.id).await?;
    let edited = stands.edited(None, Definition::clone(&job.def), at(100), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    subject.wakes(job.id, 121).await
}

pub async fn an_edit_to_another_kind_of_schedule_ends_the_rest(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Allow)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.edit_to(job.id, 70, every(60)?).await?;
    subject.wakes(job.id, 120).await?;
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        DONE
    );
    assert_eq!(subject.job(job.id).await?.next_slot, Some(slot(180)));
    Ok(())
}

pub async fn an_edit_to_one_that_rests_waits_for_all_that_live(subject: Subject) -> Kept {
    let job = subject.put(super::job(1)?).await?;
    let runs = [
        subject.claimed(job.id).await?,
        subject.claimed(job.id).await?,
    ];
    subject.edit_to(job.id, 130, after_completion(60)?).await?;
    subject.rests(job.id).await?;
    let settled = subject
        .settle(settlement(&runs[1], Verdict::Succeed))
        .await?;
    assert_eq!(settled, DONE, "another lives");
    subject.rests(job.id).await?;
    let mut last = settlement(&runs[0], Verdict::Succeed);
    last.attempt = last.attempt.map(|attempt| Attempt {
        settled_at: at(140),
        ..attempt
    });
    assert_eq!(subject.settle(last).await?, woken(at(200)));
    Ok(())
}

/// Of two runs that were made ahead, one goes back and one had left.
pub async fn a_run_taken_back_beside_another_leaves_the_job_resting(subject: Subject) -> Kept {
    for (number, withdrawn) in [(1, true), (2, false)] {
        let schedule = every(1)?;
        let job = job_with(number, |def| def.schedule = schedule)?;
        let def = Definition::clone(&job.def);
        let job = subject
            .put(Job::new(job.id, job.tenant, None, def, at(59)))
            .await?;
        let (left, ahead) = (
            subject.claimed(job.id).await?,
            subject.claimed(job.id).await?,
        );
        let (_, marked) = subject.edit_to(job.id, 59, after_completion(60)?).await?;
        assert_eq!(marked, [left.id, ahead.id]);
        let answers = [(left.id, false), (ahead.id, true)]
            .map(|(run, taken_back)| Withdrawal { run, taken_back });
        let by = subject.presence();
        if withdrawn {
            subject.store.withdraw(by, &answers, at(60)).await?;
        } else {
            subject.store.withdraw(by, &answers[..1], at(60)).await?;
            let settled = subject.settle(settlement(&ahead, Verdict::Release)).await?;
            assert_eq!(settled, DONE);
        }
        subject.rests(job.id).await?;
        let settled = subject.settle(settlement(&left, Verdict::Succeed)).await?;
        assert_eq!(settled, woken(at(121)));
    }
    Ok(())
}

pub async fn a_slot_taken_back_that_bounds_leave_out_is_not_decided(subject: Subject) -> Kept {
    let too_late = Bounds {
        ends_at: Some(at(59)),
        ..Bounds::default()
    };
    let too_early = Bounds {
        starts_at: Some(at(500)),
        ..Bounds::default()
    };
    for (number, bounds, state, next) in [
        (1, too_late, JobState::Finished, None),
        (2, too_early, JobState::Active, Some(slot(500))),
    ] {
        let job = subject.put(resting(number, Overlap::Skip)?).await?;
        let run = subject.claimed(job.id).await?;
        let schedule = Schedule {
            bounds,
            ..after_completion(60)?
        };
        subject.edit_to(job.id, 58, schedule).await?;
        let answer = Withdrawal {
            run: run.id,
            taken_back: true,
        };
        let by = subject.presence();
        subject.store.withdraw(by, &[answer], at(58)).await?;
        let stands = subject.job(job.id).await?;
        assert_eq!((stands.state, stands.next_slot), (state, next));
    }
    Ok(())
}

pub async fn a_pause_outlasts_the_end_of_the_run(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let paused = stands.paused(at(60), None, &someone());
    subject
        .change(&stands, paused, RunsOfChange::TakeBack)
        .await?;
    let paused = subject.job(job.id).await?;
    assert_eq!((paused.state, paused.next_slot), (JobState::Paused, None));
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        DONE
    );
    assert_eq!(subject.job(job.id).await?, paused);
    let resumed = paused.resumed(at(100), false, &someone());
    assert_eq!(resumed.1, [], "nothing was to come before its end");
    subject.change(&paused, resumed, RunsOfChange::Keep).await?;
    subject.wakes(job.id, 160).await
}

pub async fn a_resumed_job_rests_while_its_run_lives(subject: Subject) -> Kept {
    for (number, catch_up) in [(1, false), (2, true)] {
        let job = subject.put(resting(number, Overlap::Skip)?).await?;
        let run = subject.claimed(job.id).await?;
        let stands = subject.job(job.id).await?;
        let paused = stands.paused(at(60), None, &someone());
        let (paused, _) = subject
            .change(&stands, paused, RunsOfChange::TakeBack)
            .await?;
        let resumed = paused.resumed(at(61), catch_up, &someone());
        let paused = Arc::new(paused);
        let (resumed, _) = subject.change(&paused, resumed, RunsOfChange::Keep).await?;
        assert_eq!(*subject.job(job.id).await?, resumed);
        subject.rests(job.id).await?;
        let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
        assert_eq!(settled, woken(at(121)));
    }
    Ok(())
}

pub async fn a_parked_job_is_not_woken(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    let odd = [(job.id, "it is odd".to_owned())];
    subject.store.park(&odd, at(60)).await?;
    let parked = subject.job(job.id).await?;
    assert_eq!(parked.state, JobState::Invalid);
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        DONE
    );
    assert_eq!(subject.job(job.id).await?, parked);
    Ok(())
}

pub async fn a_deleted_job_is_not_woken(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let gone = stands.deleted(at(60), &someone());
    subject.change(&stands, gone, RunsOfChange::Cancel).await?;
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        DONE
    );
    let read = subject.store.get_job(TenantId::DEFAULT, job.id).await?;
    assert_eq!(read, None);
    Ok(())
}

pub async fn a_finished_job_is_not_woken(subject: Subject) -> Kept {
    let mut job = resting(1, Overlap::Skip)?;
    Arc::make_mut(&mut job.def).schedule.bounds.runs_max = Some(1);
    let job = subject.put(job).await?;
    let run = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.state, stands.runs_left()),
        (JobState::Finished, Some(0))
    );
    assert_eq!(
        subject.settle(settlement(&run, Verdict::Succeed)).await?,
        DONE
    );
    assert_eq!(subject.job(job.id).await?, stands);
    Ok(())
}

pub async fn an_end_beyond_the_bounds_finishes_the_job(subject: Subject) -> Kept {
    for (number, ends_at, state, next) in [
        (1, at(121), JobState::Active, Some(slot(121))),
        (2, at(120), JobState::Finished, None),
    ] {
        let mut job = resting(number, Overlap::Skip)?;
        Arc::make_mut(&mut job.def).schedule.bounds.ends_at = Some(ends_at);
        let job = subject.put(job).await?;
        let run = subject.claimed(job.id).await?;
        subject.rests(job.id).await?;
        let settled = subject.settle(settlement(&run, Verdict::Succeed)).await?;
        assert_eq!(settled, next.map_or(DONE, |slot| woken(slot.0)));
        let stands = subject.job(job.id).await?;
        assert_eq!((stands.state, stands.next_slot), (state, next));
        let since = next.map_or(at(61), |_| job.state_at);
        assert_eq!(stands.state_at, since, "retention goes by it");
    }
    Ok(())
}

pub async fn a_change_that_the_end_of_a_run_overtook_is_a_conflict(subject: Subject) -> Kept {
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    let before = subject.job(job.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    let (after, skipped) = before.paused(at(61), None, &someone());
    let late = JobChange {
        before,
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::TakeBack,
    };
    let stands = subject.job(job.id).await?;
    assert_eq!(
        subject.store.change_job(&late).await?,
        JobChanged::Conflict(Box::new(Job::clone(&stands)))
    );
    subject.wakes(job.id, 121).await
}

pub async fn opening_again_keeps_a_job_resting(subject: Subject) -> Kept {
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let run = subject.claimed(job.id).await?;
    subject.clock.advance(Duration::from_secs(70));
    let Subject {
        store,
        clock,
        guard,
        ..
    } = subject;
    let again = Subject::over(reopen(store).await?, clock).await?;
    again.rests(job.id).await?;
    let settled = again.settle(settlement(&run, Verdict::Release)).await?;
    assert_eq!(settled, DONE);
    again.rests(job.id).await?;
    again.claim(&again.leases, run.id).await?;
    let run = again.run(run.id).await?;
    let settled = again.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(settled, woken(at(121)));
    again.wakes(job.id, 121).await?;
    drop(guard);
    Ok(())
}
