//! ClaimDue: whoever has room gets what nobody holds, without a lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::shard::ShardSet;
use model::{
    Definition, Job, Lane, Outcome, Overlap, PresenceId, Run, RunId, RunState, Shard, Verdict,
    Version,
};

use super::subject::SECOND;
use super::{DONE, Kept, Subject, at, attempt, job, job_with, once, settlement, someone};
use crate::{BoxError, DueRoom, RunsOfChange, StoreError};

/// Room for anything.
const MUCH: [usize; Lane::COUNT] = [100; Lane::COUNT];

impl Subject {
    /// Claims what is due up to so many seconds, of any shard.
    async fn claim_due(
        &self,
        by: PresenceId,
        secs: i64,
        room: [usize; Lane::COUNT],
    ) -> Result<Vec<(Run, Arc<Job>)>, BoxError> {
        Ok(self
            .store
            .claim_due(by, &ShardSet::ALL, DueRoom::for_earliest(at(secs), room))
            .await?)
    }

    /// A run that nobody holds, of a job that is due once.
    async fn due_once(&self, number: u8, secs: i64, lane: Lane) -> Result<RunId, BoxError> {
        let mut job = once(number, secs)?;
        Arc::make_mut(&mut job.def).lane = lane;
        let job = self.put(job).await?;
        Ok(self.ready(job.id).await?.id)
    }
}

fn names(taken: &[(Run, Arc<Job>)]) -> Vec<RunId> {
    taken.iter().map(|(run, _)| run.id).collect()
}

pub async fn the_earliest_are_claimed_first(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let mut runs = Vec::new();
    for (number, secs) in [(1, 40), (2, 10), (3, 30), (4, 20), (5, 10)] {
        runs.push(subject.due_once(number, secs, Lane::Standard).await?);
    }
    let mut same = [runs[1], runs[4]];
    same.sort();
    let taken = subject.claim_due(other, 100, [0, 3, 0]).await?;
    assert_eq!(names(&taken), [same[0], same[1], runs[3]]);
    let taken = subject.claim_due(other, 100, [9, 9, 9]).await?;
    assert_eq!(names(&taken), [runs[2], runs[0]]);
    Ok(())
}

pub async fn what_is_on_time_is_claimed_before_an_older_backlog(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let mut runs = Vec::new();
    for (number, secs) in [(1, 10), (2, 20), (3, 30), (4, 50), (5, 40)] {
        runs.push(subject.due_once(number, secs, Lane::Standard).await?);
    }
    let critical = subject.due_once(6, 11, Lane::Critical).await?;
    let mut due = DueRoom {
        on_time_from: at(40),
        up_to: at(100),
        room: [3; Lane::COUNT],
        backlog: [0, 2, 0],
    };
    let taken = subject.store.claim_due(other, &ShardSet::ALL, due).await?;
    assert_eq!(names(&taken), [runs[4], runs[3], runs[0]]);
    // A lane with nothing on time gets no more than it may have of the backlog.
    let taken = subject.store.claim_due(other, &ShardSet::ALL, due).await?;
    assert_eq!(names(&taken), [runs[1], runs[2]]);
    due.backlog = [1; Lane::COUNT];
    let taken = subject.store.claim_due(other, &ShardSet::ALL, due).await?;
    assert_eq!(names(&taken), [critical]);
    Ok(())
}

pub async fn each_lane_has_its_own_room(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let lanes = [Lane::Batch, Lane::Standard, Lane::Critical];
    let mut number = 0;
    for lane in lanes {
        for secs in 1..=4 {
            number += 1;
            subject.due_once(number, secs, lane).await?;
        }
    }
    let taken = subject.claim_due(other, 100, [3, 0, 1]).await?;
    let lanes: Vec<_> = taken.iter().map(|(run, _)| run.lane).collect();
    let critical = Lane::Critical;
    assert_eq!(lanes, [critical, critical, critical, Lane::Batch]);
    assert_eq!(subject.claim_due(other, 100, [0; Lane::COUNT]).await?, []);
    assert_eq!(subject.claim_due(other, 100, MUCH).await?.len(), 8);
    Ok(())
}

pub async fn a_run_is_claimed_once(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let job = subject.put(job(1)?).await?;
    let ready = subject.ready(job.id).await?;
    let held = Run {
        claim: Some(other),
        ..ready
    };
    let stands = subject.job(job.id).await?;
    let taken = subject.claim_due(other, 60, MUCH).await?;
    assert_eq!(taken, [(held.clone(), stands)]);
    assert_eq!(subject.run(held.id).await?, held);
    assert_eq!(subject.claim_due(other, 60, MUCH).await?, []);
    assert_eq!(subject.claim_due(subject.presence(), 60, MUCH).await?, []);
    let claims = subject.store.claims(other, None, 9).await?;
    assert_eq!(claims.len(), 1);
    Ok(())
}

pub async fn only_runs_of_the_given_shards_are_claimed(subject: Subject) -> Kept {
    let Subject { store, other, .. } = &subject;
    let mut runs = BTreeSet::new();
    for number in 1..=6 {
        let run = subject.due_once(number, 10, Lane::Standard).await?;
        runs.insert((subject.run(run).await?.shard(), run));
    }
    let one = runs.iter().next().map(|(shard, _)| *shard);
    let one = one.ok_or("no runs")?;
    let room = DueRoom::for_earliest(at(10), MUCH);
    let rest: ShardSet = Shard::all().filter(|shard| *shard != one).collect();
    let taken = store.claim_due(other.presence, &rest, room).await?;
    let expected = runs.iter().filter(|(shard, _)| *shard != one);
    let expected: BTreeSet<RunId> = expected.map(|(_, run)| *run).collect();
    assert_eq!(names(&taken).into_iter().collect::<BTreeSet<_>>(), expected);
    let none = ShardSet::default();
    let taken = store.claim_due(other.presence, &none, room).await?;
    assert_eq!(taken, []);
    let one: ShardSet = [one].into_iter().collect();
    let taken = store.claim_due(other.presence, &one, room).await?;
    assert_eq!(taken.len(), runs.len() - expected.len());
    Ok(())
}

pub async fn what_is_due_later_is_not_claimed(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let run = subject.due_once(1, 10, Lane::Critical).await?;
    assert_eq!(subject.claim_due(other, 9, MUCH).await?, []);
    assert_eq!(names(&subject.claim_due(other, 10, MUCH).await?), [run]);
    Ok(())
}

pub async fn runs_that_wait_or_are_held_are_not_claimed(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let job = subject
        .put(job_with(1, |def| def.overlap = Overlap::QueueOne)?)
        .await?;
    let held = subject.claimed(job.id).await?;
    subject.fire(job.id, true).await?;
    assert_eq!(subject.claim_due(other, 9_999, MUCH).await?, []);
    subject.settle(settlement(&held, Verdict::Succeed)).await?;
    let taken = subject.claim_due(other, 9_999, MUCH).await?;
    let [(freed, _)] = taken.as_slice() else {
        return Err(format!("{taken:?}").into());
    };
    assert_eq!((freed.due_at, freed.claim), (at(120), Some(other)));
    Ok(())
}

pub async fn a_fenced_presence_claims_nothing(subject: Subject) -> Kept {
    let run = subject.due_once(1, 1, Lane::Standard).await?;
    subject.fence_first().await?;
    for gone in [subject.presence(), PresenceId::new(at(9), [9; 10])] {
        let taken = subject
            .store
            .claim_due(gone, &ShardSet::ALL, DueRoom::for_earliest(at(9), MUCH))
            .await;
        assert!(matches!(taken, Err(StoreError::Fenced)), "{taken:?}");
    }
    assert_eq!(subject.run(run).await?.claim, None);
    Ok(())
}

pub async fn what_is_claimed_is_an_attempt_at_the_job_as_it_stands(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let run = subject.ready(job.id).await?;
    let stands = subject.job(job.id).await?;
    let def = Definition {
        payload: Some("another".into()),
        ..Definition::clone(&job.def)
    };
    let edit = stands.edited(None, def, at(61), &someone());
    let change = subject.change(&stands, edit, RunsOfChange::TakeBack);
    let (edited, _) = change.await?;
    let taken = subject.claim_due(subject.other.presence, 61, MUCH).await?;
    let [(taken, job)] = taken.as_slice() else {
        return Err(format!("{taken:?}").into());
    };
    assert_eq!((taken.id, taken.version), (run.id, Version(2)));
    assert_eq!(**job, edited);
    assert_eq!(subject.run(run.id).await?.version, Version(2));
    Ok(())
}

pub async fn retries_are_claimed_under_their_next_number(subject: Subject) -> Kept {
    let other = subject.other.presence;
    let job = subject.put(job(1)?).await?;
    let first = subject.claimed(job.id).await?;
    let retry = settlement(&first, Verdict::RetryAt(at(70)));
    subject.settle(retry).await?;
    assert_eq!(subject.claim_due(other, 69, MUCH).await?, []);
    let taken = subject.claim_due(other, 70, MUCH).await?;
    let [(run, _)] = taken.as_slice() else {
        return Err(format!("{taken:?}").into());
    };
    assert_eq!((run.attempt, run.state), (SECOND, RunState::Ready));
    assert_eq!((run.due_at, run.claim), (at(70), Some(other)));
    assert_eq!(run.attempts, [attempt(&first, Outcome::Failed)]);
    Ok(())
}

pub async fn whoever_claims_a_run_settles_it(subject: Subject) -> Kept {
    let other = subject.other.presence;
    subject.due_once(1, 1, Lane::Batch).await?;
    let taken = subject.claim_due(other, 1, MUCH).await?;
    let [(run, _)] = taken.as_slice() else {
        return Err(format!("{taken:?}").into());
    };
    let end = [settlement(run, Verdict::Succeed)];
    assert_eq!(subject.store.settle(other, &end).await?, [DONE]);
    assert_eq!(subject.run(run.id).await?.state, RunState::Succeeded);
    Ok(())
}
