//! Failures: a job that says so is paused after so many dead runs in a row, by the end of the last of them.

use std::sync::Arc;
use std::time::Duration;

use model::view::PausedJob;
use model::{
    Completion, Definition, FailuresMax, Job, JobId, JobState, Level, Mark, Overlap, Reason, Run,
    Timestamp, Verdict, Version,
};

use super::{DONE, Kept, Subject, job_with, settlement, someone};
use crate::{
    AuditEntry, AuditRange, BoxError, HandOver, HandedEnd, JobChange, JobChanged, Raised, Reported,
    RunsOfChange, SYSTEM, Settled,
};

const BURY: Verdict = Verdict::Bury(Reason::AttemptsSpent);

fn counting(max: u32, overlap: Overlap) -> Result<Job, BoxError> {
    job_with(1, |def| {
        def.overlap = overlap;
        def.pause_after_failures = FailuresMax::new(max);
    })
}

impl Subject {
    /// The next slot of a job comes, its run is claimed and ends a second later.
    async fn ends(&self, id: JobId, verdict: Verdict) -> Result<Settled, BoxError> {
        let run = self.claimed(id).await?;
        self.wait_until(run.due_at.plus(Duration::from_secs(1)));
        self.settle(settlement(&run, verdict)).await
    }

    fn wait_until(&self, at: Timestamp) {
        use crate::StoreClock;
        self.clock.advance(at.since(self.clock.now()));
    }

    /// A job as plan sees it: none that is paused.
    async fn pauses(&self, id: JobId) -> Result<Arc<Job>, BoxError> {
        let job = self.job(id).await?;
        assert_eq!((job.state, job.next_slot), (JobState::Paused, None));
        let due = self
            .due(&model::shard::ShardSet::ALL, Timestamp::MAX, 9)
            .await?;
        assert!(due.is_empty(), "{due:?}");
        Ok(job)
    }

    async fn pause_entries(&self) -> Result<Vec<AuditEntry>, BoxError> {
        let entries = self.store.access().list_audit(&AuditRange::ALL).await?;
        let pauses = entries.into_iter().filter(|it| it.action == "job.pause");
        Ok(pauses.collect())
    }
}

fn paused(settled: Settled) -> Result<PausedJob, BoxError> {
    match settled {
        Settled::Done {
            paused: Some(paused),
            due_at: None,
            ..
        } => Ok(*paused),
        other @ (Settled::Done { .. } | Settled::Stale | Settled::Refused(_)) => {
            Err(format!("settled as {other:?}").into())
        }
    }
}

/// With an error, as it comes from a target.
fn buried(run: &Run) -> crate::Settlement {
    let mut dead = settlement(run, BURY);
    if let Some(attempt) = &mut dead.attempt {
        attempt.error = Some("it answered 500".to_owned());
    }
    dead
}

pub async fn exactly_the_last_failure_pauses_and_says_why(subject: Subject) -> Kept {
    let job = subject.put(counting(3, Overlap::Skip)?).await?;
    for failures in 1..=2 {
        assert_eq!(subject.ends(job.id, BURY).await?, DONE);
        let stands = subject.job(job.id).await?;
        assert_eq!(stands.failures, Some(failures));
        assert_eq!(
            (stands.state, stands.version),
            (JobState::Active, Version(1))
        );
    }
    let run = subject.claimed(job.id).await?;
    subject.wait_until(run.due_at.plus(Duration::from_secs(1)));
    let dead = buried(&run);
    let said = paused(subject.settle(dead.clone()).await?)?;
    let why = "paused after 3 failed runs in a row, the last: it answered 500";
    assert_eq!((said.note.as_str(), said.marked), (why, false));
    let stands = subject.pauses(job.id).await?;
    assert_eq!(stands.note.as_deref(), Some(why));
    assert_eq!(stands.paused_by.as_deref(), Some(SYSTEM));
    assert_eq!(stands.version, Version(2));
    assert_eq!(
        stands.state_at,
        run.due_at.plus(Duration::from_secs(1)),
        "when it was written"
    );
    let entries = subject.pause_entries().await?;
    let [entry] = &entries[..] else {
        return Err(format!("entered as {entries:?}").into());
    };
    assert_eq!(
        (entry.actor.as_str(), entry.subject.as_str()),
        (SYSTEM, job.id.to_string().as_str())
    );
    let after = entry.after.as_deref();
    assert!(after.is_some_and(|after| after.contains(why)), "{entry:?}");
    assert_eq!(subject.settle(dead).await?, Settled::Stale, "settled again");
    Ok(())
}

pub async fn a_success_between_failures_begins_the_count_again(subject: Subject) -> Kept {
    for (number, overlap) in [(1, Overlap::Allow), (2, Overlap::QueueOne)] {
        let job = job_with(number, |def| {
            def.overlap = overlap;
            def.pause_after_failures = FailuresMax::new(2);
        })?;
        let job = subject.put(job).await?;
        assert_eq!(subject.ends(job.id, BURY).await?, DONE);
        let cancel = Verdict::Cancel(Reason::Requested);
        assert_eq!(subject.ends(job.id, cancel).await?, DONE);
        assert_eq!(subject.job(job.id).await?.failures, Some(1), "no failure");
        assert_eq!(subject.ends(job.id, Verdict::Succeed).await?, DONE);
        assert_eq!(subject.job(job.id).await?.failures, Some(0));
        assert_eq!(subject.ends(job.id, BURY).await?, DONE);
        assert_eq!(subject.job(job.id).await?.state, JobState::Active);
        paused(subject.ends(job.id, BURY).await?)?;
    }
    Ok(())
}

pub async fn a_resumed_job_counts_from_nothing(subject: Subject) -> Kept {
    let job = subject.put(counting(2, Overlap::Skip)?).await?;
    assert_eq!(subject.ends(job.id, BURY).await?, DONE);
    paused(subject.ends(job.id, BURY).await?)?;
    let stands = subject.pauses(job.id).await?;
    let now = stands.state_at.plus(Duration::from_secs(5));
    subject.wait_until(now);
    let resumed = stands.resumed(now, false, &someone());
    let (resumed, _) = subject.change(&stands, resumed, RunsOfChange::Keep).await?;
    assert_eq!((resumed.failures, resumed.note), (Some(0), None));
    assert_eq!(subject.ends(job.id, BURY).await?, DONE);
    paused(subject.ends(job.id, BURY).await?)?;
    assert_eq!(subject.pause_entries().await?.len(), 2);
    Ok(())
}

pub async fn of_overlapping_runs_that_fail_at_once_one_pauses(subject: Subject) -> Kept {
    let job = subject.put(counting(2, Overlap::Allow)?).await?;
    let mut ends = Vec::new();
    for _ in 0..5 {
        let run = subject.claimed(job.id).await?;
        subject.wait_until(run.due_at.plus(Duration::from_secs(1)));
        ends.push(settlement(&run, BURY));
    }
    let settled = subject.store.settle(subject.presence(), &ends).await?;
    let pauses = settled.iter().map(|it| paused(it.clone()).is_ok());
    let pauses: Vec<bool> = pauses.collect();
    assert_eq!(pauses, [false, true, false, false, false]);
    let stands = subject.pauses(job.id).await?;
    assert_eq!(stands.version, Version(2));
    assert_eq!(subject.pause_entries().await?.len(), 1);
    assert_eq!(subject.store.count_live().await?, 0);
    Ok(())
}

pub async fn an_edit_between_failures_loses_none(subject: Subject) -> Kept {
    let job = subject.put(counting(3, Overlap::Skip)?).await?;
    let read = subject.job(job.id).await?;
    let edit = |job: &Arc<Job>, now: Timestamp| {
        let mut def = Definition::clone(&job.def);
        def.labels.insert("team".to_owned(), "ops".to_owned());
        let (after, skipped) = job.edited(None, def, now, &someone());
        JobChange {
            before: Arc::clone(job),
            after: Arc::new(after),
            skipped,
            runs: RunsOfChange::TakeBack,
        }
    };
    assert_eq!(subject.ends(job.id, BURY).await?, DONE);
    // It was read before that run ended, and before its slot was fired.
    let stale = Arc::new(Job {
        failures: read.failures,
        ..Job::clone(&*subject.job(job.id).await?)
    });
    let now = stale.updated_at.plus(Duration::from_secs(70));
    let changed = subject.store.change_job(&edit(&stale, now)).await?;
    assert!(matches!(changed, JobChanged::Conflict(_)), "{changed:?}");
    let stands = subject.job(job.id).await?;
    let changed = subject.store.change_job(&edit(&stands, now)).await?;
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    assert_eq!(subject.job(job.id).await?.failures, Some(1));
    assert_eq!(subject.ends(job.id, BURY).await?, DONE);
    paused(subject.ends(job.id, BURY).await?)?;
    Ok(())
}

pub async fn a_bound_that_an_edit_brings_counts_the_runs_that_live(subject: Subject) -> Kept {
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::Allow)?)
        .await?;
    let run = subject.claimed(job.id).await?;
    assert_eq!(subject.ends(job.id, BURY).await?, DONE);
    let stands = subject.job(job.id).await?;
    assert_eq!(stands.failures, None);
    let mut def = Definition::clone(&stands.def);
    def.pause_after_failures = FailuresMax::new(1);
    let now = run.due_at.plus(Duration::from_secs(90));
    subject.wait_until(now);
    let edited = stands.edited(None, def, now, &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    paused(subject.settle(settlement(&run, BURY)).await?)?;
    Ok(())
}

pub async fn what_is_fired_ahead_is_taken_back_with_the_pause(subject: Subject) -> Kept {
    let job = subject.put(counting(1, Overlap::Allow)?).await?;
    let first = subject.claimed(job.id).await?;
    let held = subject.claimed(job.id).await?;
    subject.wait_until(held.due_at.minus(Duration::from_millis(20)));
    let said = paused(subject.settle(settlement(&first, BURY)).await?)?;
    assert!(said.marked);
    assert_eq!(subject.run(held.id).await?.mark, Some(Mark::TakeBack));
    subject.pauses(job.id).await?;
    Ok(())
}

pub async fn a_job_without_the_bound_counts_nothing(subject: Subject) -> Kept {
    let job = subject.put(job_with(1, |_| {})?).await?;
    for _ in 0..3 {
        assert_eq!(subject.ends(job.id, BURY).await?, DONE);
    }
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.failures, stands.state, stands.version),
        (None, JobState::Active, Version(1))
    );
    Ok(())
}

pub async fn what_is_reported_as_failed_counts_as_well(subject: Subject) -> Kept {
    assert_eq!(subject.store.raise_level(Level(3)).await?, Raised::Done);
    let mut job = counting(1, Overlap::Skip)?;
    let def = Arc::make_mut(&mut job.def);
    def.completion = Completion::Callback {
        heartbeat_within: Duration::from_secs(60),
    };
    def.retry.attempts_max = 1;
    let job = subject.put(job).await?;
    let run = subject.claimed(job.id).await?;
    let now = run.due_at.plus(Duration::from_secs(1));
    subject.wait_until(now);
    let handed = subject.store.handed();
    let over = HandOver {
        run: run.id,
        job: job.id,
        attempt: run.attempt,
        node: Arc::from("node"),
        dispatched_at: run.due_at,
        within: Duration::from_secs(60),
        timeout: Duration::from_secs(300),
    };
    handed.hand_over(subject.presence(), &[over], now).await?;
    let reported = Reported {
        run: run.id,
        attempt: run.attempt,
        dispatched_at: run.due_at,
        report: model::Report::failed("no space left"),
        chance: 0.5,
    };
    let ended = handed.report(&[reported], now).await?;
    let Some(HandedEnd::Done(ended)) = ended.into_iter().next() else {
        return Err("it was not ended".into());
    };
    let said = paused(ended.settled.clone())?;
    assert_eq!(said.note, "paused after a failed run: no space left");
    let stands = subject.pauses(job.id).await?;
    assert_eq!(stands.note, Some(said.note));
    let entries = subject.pause_entries().await?;
    assert!(entries.iter().all(|entry| entry.actor == SYSTEM));
    assert_eq!(entries.len(), 1);
    Ok(())
}
