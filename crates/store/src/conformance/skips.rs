//! Skips: slots that will not run, and what is kept of each: why, what stands behind it, who decided and when.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use model::job::Decision;
use model::policy::{CatchUp, CatchUpPolicy};
use model::{Definition, Job, JobState, Reason, Run, RunId, RunState, Skip, Stretch, Verdict};

use super::{
    Kept, NODE, Subject, at, every, firing, job, job_with, settlement, skip, slot, someone,
};
use crate::{BoxError, Fired, Firing, JobChange, JobChanged, RunsOfChange, Withdrawal};

fn catching_up(policy: CatchUpPolicy) -> Result<Job, BoxError> {
    let window = Duration::from_secs(3_600);
    job_with(1, |def| {
        def.catch_up = CatchUp {
            policy,
            window,
            max: 9,
        }
    })
}

fn noted(skip: Skip, note: &str, by: &str) -> Skip {
    Skip {
        note: Some(note.to_owned()),
        actor: Arc::from(by),
        ..skip
    }
}

/// Skips of every kind: with a note and without, of one slot and of many, by nodes and by people.
fn some_of_each() -> [Skip; 4] {
    [
        noted(skip(60, 180, Reason::Calendar), "holidays.de", "node a"),
        noted(skip(240, 240, Reason::Paused), "it's \"ö\"", "Ana Ö."),
        skip(300, 600, Reason::Missed),
        noted(skip(660, 720, Reason::Invalid), "", ""),
    ]
}

pub async fn a_stretch_of_missed_slots_is_one_entry(subject: Subject) -> Kept {
    let job = subject.put(catching_up(CatchUpPolicy::None)?).await?;
    let fired = subject
        .store
        .fire(&subject.leases, &[firing(&job, at(290))])
        .await?;
    assert_eq!(fired, [Fired::Skipped(Reason::Missed)]);
    let missed = skip(60, 240, Reason::Missed);
    let entry = Run::skipped(&job, &missed, at(290));
    assert_eq!(entry.stretch, Some(missed.slots));
    assert_eq!(subject.runs().await?, [entry]);
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.next_slot, stands.slot_last),
        (Some(slot(300)), Some(at(240)))
    );
    Ok(())
}

pub async fn one_missed_slot_is_an_entry_of_its_own(subject: Subject) -> Kept {
    let job = subject.put(catching_up(CatchUpPolicy::None)?).await?;
    subject
        .store
        .fire(&subject.leases, &[firing(&job, at(100))])
        .await?;
    let runs = subject.runs().await?;
    let [entry] = runs.as_slice() else {
        return Err(format!("{runs:?}").into());
    };
    assert_eq!((entry.stretch, entry.slot), (None, Some(slot(60))));
    assert_eq!((entry.due_at, entry.settled_at), (at(60), Some(at(100))));
    assert_eq!((entry.actor.as_deref(), &entry.note), (Some(NODE), &None));
    Ok(())
}

pub async fn the_slot_that_catches_up_runs_beside_the_missed_entry(subject: Subject) -> Kept {
    let job = subject.put(catching_up(CatchUpPolicy::Latest)?).await?;
    let batch = [firing(&job, at(290))];
    let id = RunId::for_slot(job.id, slot(240));
    let fired = subject.store.fire(&subject.leases, &batch).await?;
    assert_eq!(fired, [Fired::Claimed(id)]);
    let entry = Run::skipped(&job, &skip(60, 180, Reason::Missed), at(290));
    let run = Run {
        claim: Some(subject.presence()),
        ..Run::of_slot(&job, slot(240))
    };
    assert_eq!(subject.runs().await?, [entry, run]);
    assert_eq!(subject.store.fire(&subject.leases, &batch).await?, fired);
    Ok(())
}

pub async fn every_skip_of_a_decision_is_kept_whole(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let spread = Duration::from_secs(30);
    for (number, start) in [(1, None), (2, Some(slot(780)))] {
        let job = subject
            .put(job_with(number, |def| def.spread = spread)?)
            .await?;
        let decision = Decision {
            at: at(781),
            actor: Arc::from(NODE),
            passed: some_of_each().to_vec(),
            start,
            next: Some(slot(840)),
            catch_up_to: None,
        };
        let firing = [Firing {
            job: job.clone(),
            decision,
            claim: true,
            knows: Vec::new(),
        }];
        let started = start.map(|slot| Run {
            claim: Some(leases.presence),
            ..Run::of_slot(&job, slot)
        });
        let fired = match &started {
            Some(run) => Fired::Claimed(run.id),
            None => Fired::Skipped(Reason::Invalid),
        };
        let entries = some_of_each().map(|skip| Run::skipped(&job, &skip, at(781)));
        let expected: Vec<_> = entries.into_iter().chain(started).collect();
        for again in [false, true] {
            assert_eq!(
                store.fire(leases, &firing).await?,
                from_ref(&fired),
                "{again}"
            );
            let mut runs = subject.runs().await?;
            runs.retain(|run| run.job == job.id);
            assert_eq!(runs, expected, "{again}");
        }
        let stands = subject.job(job.id).await?;
        let last = start.map_or(at(720), |slot| slot.0);
        assert_eq!(
            (stands.next_slot, stands.slot_last),
            (Some(slot(840)), Some(last))
        );
    }
    Ok(())
}

pub async fn every_skip_of_a_change_is_kept_whole(subject: Subject) -> Kept {
    let before = subject.put(job(1)?).await?;
    let (edited, _) = before.edited(
        None,
        model::Definition::clone(&before.def),
        at(9),
        &someone(),
    );
    let change = JobChange {
        before,
        after: Arc::new(Job {
            updated_at: at(781),
            ..edited
        }),
        skipped: some_of_each().to_vec(),
        runs: RunsOfChange::TakeBack,
    };
    let changed = subject.store.change_job(&change).await?;
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    let entries = some_of_each().map(|skip| Run::skipped(&change.after, &skip, at(781)));
    assert_eq!(subject.runs().await?, entries);
    for entry in entries {
        assert_eq!(subject.run(entry.id).await?, entry);
    }
    Ok(())
}

pub async fn a_change_that_is_refused_explains_nothing(subject: Subject) -> Kept {
    let before = subject.put(job(1)?).await?;
    let paused = before.paused(at(1), None, &someone());
    subject.change(&before, paused, RunsOfChange::Keep).await?;
    let change = JobChange {
        after: Arc::clone(&before),
        before,
        skipped: some_of_each().to_vec(),
        runs: RunsOfChange::Keep,
    };
    let changed = subject.store.change_job(&change).await?;
    assert!(matches!(changed, JobChanged::Conflict(_)), "{changed:?}");
    assert_eq!(subject.runs().await?, []);
    Ok(())
}

pub async fn the_end_of_a_pause_is_one_entry(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let paused = job.paused(at(30), Some("too loud".to_owned()), &someone());
    let (paused, _) = subject.change(&job, paused, RunsOfChange::Keep).await?;
    let resumed = paused.resumed(at(310), false, &Arc::from("another"));
    let expected = resumed.0.clone();
    let paused = Arc::new(paused);
    let (resumed, _) = subject.change(&paused, resumed, RunsOfChange::Keep).await?;
    assert_eq!(resumed, expected);
    let entry = subject.run(RunId::for_slot(job.id, slot(60))).await?;
    assert_eq!(
        (entry.state, entry.reason),
        (RunState::Skipped, Some(Reason::Paused))
    );
    assert_eq!((entry.slot, entry.due_at), (Some(slot(60)), at(60)));
    assert_eq!(entry.settled_at, Some(at(310)));
    let stretch = Stretch {
        first: slot(60),
        last: slot(300),
        count: 5,
    };
    assert_eq!(entry.stretch, Some(stretch));
    assert_eq!(entry.note.as_deref(), Some("too loud"));
    assert_eq!(entry.actor.as_deref(), Some("someone"), "who paused it");
    Ok(())
}

pub async fn a_pause_that_is_to_catch_up_leaves_its_slots_to_be_decided(subject: Subject) -> Kept {
    let job = subject.put(catching_up(CatchUpPolicy::All)?).await?;
    let paused = job.paused(at(90), None, &someone());
    let (paused, _) = subject.change(&job, paused, RunsOfChange::Keep).await?;
    assert_eq!(paused.state, JobState::Paused);
    let paused = Arc::new(paused);
    let resumed = paused.resumed(at(310), true, &someone());
    subject.change(&paused, resumed, RunsOfChange::Keep).await?;
    assert_eq!(subject.runs().await?, []);
    let fired = subject.fire(job.id, true).await?;
    assert_eq!(
        fired,
        Fired::Claimed(RunId::for_slot(job.id, slot(60))),
        "overdue when it was paused"
    );
    Ok(())
}

pub async fn a_long_pause_is_an_entry_for_each_day(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let paused = job.paused(at(1), Some("holidays".to_owned()), &someone());
    subject.change(&job, paused, RunsOfChange::Keep).await?;
    let stands = subject.job(job.id).await?;
    // The first midnight is at second 6400.
    let now = at(6_400 + 86_400 + 100);
    let resumed = stands.resumed(now, false, &someone());
    subject.change(&stands, resumed, RunsOfChange::Keep).await?;
    let entries = subject.runs().await?;
    let recorded = entries.iter().map(|run| (run.slot, run.stretch));
    let days = [
        (60, 6_360, 106),
        (6_420, 92_760, 1_440),
        (92_820, 92_880, 2),
    ];
    let days = days.map(|(first, last, count)| {
        let (first, last) = (slot(first), slot(last));
        (Some(first), Some(Stretch { first, last, count }))
    });
    assert!(recorded.eq(days), "{entries:?}");
    for entry in &entries {
        assert_eq!(entry.note.as_deref(), Some("holidays"));
        assert_eq!(
            (entry.reason, entry.settled_at),
            (Some(Reason::Paused), Some(now))
        );
    }
    Ok(())
}

/// The clock went back: slots that were skipped, and the run after them, lie ahead again.
pub async fn what_was_skipped_before_a_run_taken_back_is_decided_again(subject: Subject) -> Kept {
    for (number, claim) in [(1, false), (2, true), (3, true)] {
        let schedule = every(1)?;
        let job = job_with(number, |def| def.schedule = schedule)?;
        let def = Definition::clone(&job.def);
        let job = Job::new(job.id, job.tenant, None, def, at(57));
        let job = subject.put(job).await?;
        let decision = Decision {
            at: at(64),
            actor: Arc::from(NODE),
            passed: vec![
                of_seconds(58, 58, Reason::Missed),
                of_seconds(59, 61, Reason::Calendar),
                of_seconds(62, 62, Reason::Missed),
            ],
            start: Some(slot(63)),
            next: Some(slot(64)),
            catch_up_to: None,
        };
        let firing = Firing {
            job: job.clone(),
            decision,
            claim,
            knows: Vec::new(),
        };
        subject.store.fire(&subject.leases, &[firing]).await?;
        let stands = subject.job(job.id).await?;
        let paused = stands.paused(at(60), None, &someone());
        let (_, marked) = subject
            .change(&stands, paused, RunsOfChange::TakeBack)
            .await?;
        for run in marked {
            let by = subject.presence();
            if number == 2 {
                let answer = Withdrawal {
                    run,
                    taken_back: true,
                };
                subject.store.withdraw(by, &[answer], at(60)).await?;
            } else {
                let run = subject.run(run).await?;
                subject.settle(settlement(&run, Verdict::Release)).await?;
            }
        }
        let stands = subject.job(job.id).await?;
        assert_eq!(stands.slot_last, Some(at(60)));
        let recorded = [
            of_seconds(58, 58, Reason::Missed),
            of_seconds(59, 60, Reason::Calendar),
        ];
        let recorded = recorded.map(|skip| Run::skipped(&job, &skip, at(64)));
        assert_eq!(subject.slots(job.id, 0, 999).await?, recorded);
    }
    Ok(())
}

/// Slots of a job that is due every second.
fn of_seconds(first: i64, last: i64, reason: Reason) -> Skip {
    let slots = Stretch {
        first: slot(first),
        last: slot(last),
        count: u64::try_from(last - first + 1).unwrap_or(0),
    };
    Skip {
        slots,
        ..skip(first, last, reason)
    }
}

pub async fn a_skip_never_takes_the_place_of_a_run(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let ended = subject.claimed(job.id).await?;
    subject.settle(settlement(&ended, Verdict::Succeed)).await?;
    let alive = subject.claimed(job.id).await?;
    let stands = subject.job(job.id).await?;
    let change = JobChange {
        before: Arc::clone(&stands),
        after: Arc::new(stands.paused(at(130), None, &someone()).0),
        skipped: vec![skip(60, 300, Reason::Paused)],
        runs: RunsOfChange::Keep,
    };
    let changed = subject.store.change_job(&change).await?;
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    let after = Run::skipped(&change.after, &skip(180, 300, Reason::Paused), at(130));
    let runs = subject.runs().await?;
    assert_eq!(runs.last(), Some(&after));
    let states = runs.iter().map(|run| (run.id, run.state));
    let left = [
        (ended.id, RunState::Succeeded),
        (alive.id, RunState::Ready),
        (after.id, RunState::Skipped),
    ];
    assert!(states.eq(left), "{runs:?}");
    Ok(())
}
