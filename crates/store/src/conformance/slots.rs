//! Slots: what came of each slot of a job, oldest first.

use std::slice::from_ref;
use std::sync::Arc;

use model::policy::CatchUpPolicy;
use model::{
    Definition, Job, JobId, Reason, Run, RunId, RunKind, RunState, Slot, TenantId, Timestamp,
    Verdict,
};

use super::{Kept, Subject, at, every, firing, job, job_with, settlement, slot, someone};
use crate::{BoxError, Fired, Keep, RunsOfChange, StartRun, Started};

const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));
const DAY: i64 = 24 * 3_600;

impl Subject {
    pub(super) async fn slots(&self, job: JobId, from: i64, to: i64) -> Result<Vec<Run>, BoxError> {
        let (from, to) = (at(from), at(to));
        let ours = TenantId::DEFAULT;
        Ok(self.store.list_slots(ours, job, from, to, 100).await?)
    }

    /// The first second of each entry listed.
    async fn seconds(&self, job: JobId, from: i64, to: i64) -> Result<Vec<i64>, BoxError> {
        let slots = self.slots(job, from, to).await?;
        Ok(slots.iter().filter_map(second).collect())
    }

    /// Fires a job's next slot so late that it is missed with all before `secs`.
    async fn missed(&self, job: JobId, secs: i64) -> Kept {
        let batch = [firing(&self.job(job).await?, at(secs))];
        let fired = self.store.fire(&self.leases, &batch).await?;
        assert_eq!(fired, [Fired::Skipped(Reason::Missed)]);
        Ok(())
    }
}

fn second(run: &Run) -> Option<i64> {
    let Slot(slot) = run.slot?;
    Some((slot.as_millis() - at(0).as_millis()) / 1_000)
}

/// Due every minute, and never late.
fn strict(number: u8) -> Result<Job, BoxError> {
    job_with(number, |def| def.catch_up.policy = CatchUpPolicy::None)
}

pub async fn slots_come_oldest_first_whatever_came_of_them(subject: Subject) -> Kept {
    let job = subject.put(strict(1)?).await?;
    for verdict in [
        Verdict::Succeed,
        Verdict::Bury(Reason::Refused),
        Verdict::Cancel(Reason::Requested),
        Verdict::RetryAt(at(999)),
    ] {
        let run = subject.claimed(job.id).await?;
        subject.settle(settlement(&run, verdict)).await?;
    }
    subject.missed(job.id, 371).await?;
    subject.claimed(job.id).await?;
    subject.ready(job.id).await?;
    let slots = subject.slots(job.id, 0, 9_999).await?;
    let listed: Vec<_> = slots.iter().map(|run| (second(run), run.state)).collect();
    let expected = [
        (60, RunState::Succeeded),
        (120, RunState::Dead),
        (180, RunState::Cancelled),
        (240, RunState::Retrying),
        (300, RunState::Skipped),
        (420, RunState::Ready),
        (480, RunState::Ready),
    ];
    assert_eq!(listed, expected.map(|(secs, state)| (Some(secs), state)));
    assert_eq!(slots, subject.runs().await?, "each of them whole");
    Ok(())
}

pub async fn a_range_of_slots_has_its_beginning_and_not_its_end(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    for number in 1..=5 {
        let run = subject.claimed(job.id).await?;
        if number % 2 == 0 {
            subject.settle(settlement(&run, Verdict::Succeed)).await?;
        }
    }
    let check = async |from, to, expected: &[i64]| -> Kept {
        let seconds = subject.seconds(job.id, from, to).await?;
        assert_eq!(seconds, expected, "from {from} to {to}");
        Ok(())
    };
    check(60, 301, &[60, 120, 180, 240, 300]).await?;
    check(120, 240, &[120, 180]).await?;
    check(121, 241, &[180, 240]).await?;
    check(120, 121, &[120]).await?;
    check(120, 120, &[]).await?;
    check(240, 120, &[]).await?;
    check(301, 9_999, &[]).await?;
    check(-999, 60, &[]).await?;
    let (from, to) = (Timestamp::MIN, Timestamp::MAX);
    let ours = TenantId::DEFAULT;
    let all = subject.store.list_slots(ours, job.id, from, to, 9).await?;
    assert_eq!(all.len(), 5);
    Ok(())
}

pub async fn so_many_slots_are_listed_as_were_requested(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let job = subject.put(strict(1)?).await?;
    subject.missed(job.id, 191).await?;
    for ended in [true, false, true, false] {
        let run = subject.claimed(job.id).await?;
        if ended {
            subject.settle(settlement(&run, Verdict::Succeed)).await?;
        }
    }
    let whole = subject.slots(job.id, 100, 9_999).await?;
    assert_eq!(whole.len(), 5);
    let ours = TenantId::DEFAULT;
    for limit in 0..=6 {
        let some = store
            .list_slots(ours, job.id, at(100), at(9_999), limit)
            .await?;
        assert_eq!(some, whole[..limit.min(5)], "the oldest {limit}");
    }
    Ok(())
}

pub async fn a_stretch_is_listed_where_it_covers_the_beginning(subject: Subject) -> Kept {
    let job = subject.put(strict(1)?).await?;
    subject.claimed(job.id).await?;
    subject.missed(job.id, 311).await?;
    subject.claimed(job.id).await?;
    subject.missed(job.id, 451).await?;
    let stretch = RunId::for_slot(job.id, slot(120));
    let entry = subject.run(stretch).await?;
    assert_eq!(
        entry.stretch.map(|it| (it.first, it.last)),
        Some((slot(120), slot(300)))
    );
    let check = async |from, to, expected: &[i64]| -> Kept {
        let seconds = subject.seconds(job.id, from, to).await?;
        assert_eq!(seconds, expected, "from {from} to {to}");
        Ok(())
    };
    check(61, 400, &[120, 360]).await?;
    check(120, 400, &[120, 360]).await?;
    check(121, 400, &[120, 360]).await?;
    check(299, 360, &[120]).await?;
    check(300, 400, &[120, 360]).await?;
    check(301, 400, &[360]).await?;
    check(200, 210, &[120]).await?;
    check(61, 121, &[120]).await?;
    check(421, 999, &[]).await?;
    Ok(())
}

/// A pause may last for weeks; where history is kept by the day, the entry lies far from what it covers.
pub async fn a_stretch_that_began_days_before_is_found(subject: Subject) -> Kept {
    let schedule = every(3_600)?;
    let job = subject
        .put(job_with(1, |def| def.schedule = schedule)?)
        .await?;
    let run = subject.claimed(job.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    let stands = subject.job(job.id).await?;
    let paused = stands.paused(at(3_601), None, &someone());
    let (paused, _) = subject
        .change(&stands, paused, RunsOfChange::TakeBack)
        .await?;
    // As it is written when days lie so far back that they are not told apart.
    let now = at(20 * DAY + 1);
    let (after, _) = paused.resumed(now, false, &someone());
    let whole = paused.passed_while_paused(now, &someone());
    let resumed = (after, whole.into_iter().collect());
    let paused = Arc::new(paused);
    subject.change(&paused, resumed, RunsOfChange::Keep).await?;
    let run = subject.claimed(job.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    let (first, next) = (7_200, 20 * DAY + 3_600);
    let check = async |from, to, expected: &[i64]| -> Kept {
        let seconds = subject.seconds(job.id, from, to).await?;
        assert_eq!(seconds, expected, "from {from} to {to}");
        Ok(())
    };
    check(0, 30 * DAY, &[3_600, first, next]).await?;
    check(10 * DAY, 11 * DAY, &[first]).await?;
    check(19 * DAY, 30 * DAY, &[first, next]).await?;
    check(20 * DAY, 30 * DAY, &[first, next]).await?;
    check(20 * DAY + 1, 30 * DAY, &[next]).await?;
    Ok(())
}

pub async fn slots_of_many_days_are_one_list(subject: Subject) -> Kept {
    let schedule = every(6 * 3_600)?;
    let job = subject
        .put(job_with(1, |def| def.schedule = schedule)?)
        .await?;
    let mut all = Vec::new();
    for number in 1..=20 {
        let run = subject.claimed(job.id).await?;
        if number % 7 != 0 {
            subject.settle(settlement(&run, Verdict::Succeed)).await?;
        }
        all.push(number * 6 * 3_600);
    }
    assert_eq!(subject.seconds(job.id, 0, 9 * DAY).await?, all);
    let some = subject.seconds(job.id, DAY, 3 * DAY).await?;
    assert_eq!(some, all[3..11]);
    let ours = TenantId::DEFAULT;
    let first = subject
        .store
        .list_slots(ours, job.id, at(DAY), at(9 * DAY), 6)
        .await?;
    let first: Vec<_> = first.iter().filter_map(second).collect();
    assert_eq!(first, all[3..9]);
    Ok(())
}

pub async fn runs_by_hand_are_no_slots(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    let dead = subject.claimed(job.id).await?;
    subject
        .settle(settlement(&dead, Verdict::Bury(Reason::Refused)))
        .await?;
    let inserted = Run::of_slot(&job, slot(60));
    let manual = Run {
        id: RunId::of_request(job.id, at(61), 1),
        kind: RunKind::Manual,
        slot: None,
        ..inserted.clone()
    };
    let replay = Run {
        id: RunId::of_request(job.id, at(62), 2),
        kind: RunKind::Replay,
        replay_of: Some(dead.id),
        ..inserted
    };
    for ended in [false, true] {
        for run in [&manual, &replay] {
            if !ended {
                let start = StartRun {
                    run: run.clone(),
                    force: false,
                };
                let started = subject.store.start_run(&start).await?;
                assert_eq!(started, Started::Ready);
            } else {
                subject.claim(&subject.leases, run.id).await?;
                let run = subject.run(run.id).await?;
                subject.settle(settlement(&run, Verdict::Succeed)).await?;
            }
        }
        let slots = subject.slots(job.id, 0, 999).await?;
        let listed: Vec<_> = slots.iter().map(|run| run.id).collect();
        assert_eq!(listed, [dead.id], "ended: {ended}");
        assert_eq!(subject.runs().await?.len(), 3);
    }
    Ok(())
}

pub async fn slots_are_listed_to_their_tenant_job_by_job(subject: Subject) -> Kept {
    let Subject { store, .. } = &subject;
    let (first, second) = (strict(1)?, strict(2)?);
    let (first, second) = (subject.put(first).await?, subject.put(second).await?);
    for job in [&first, &second] {
        let run = subject.claimed(job.id).await?;
        subject.settle(settlement(&run, Verdict::Succeed)).await?;
        subject.missed(job.id, 251).await?;
        subject.claimed(job.id).await?;
    }
    let slots = subject.slots(first.id, 150, 999).await?;
    assert_eq!(slots.len(), 2);
    assert!(slots.iter().all(|run| run.job == first.id), "{slots:?}");
    for (tenant, job) in [(STRANGER, first.id), (TenantId::DEFAULT, job(3)?.id)] {
        let none = store.list_slots(tenant, job, at(150), at(999), 9).await?;
        assert_eq!(none, []);
    }
    Ok(())
}

pub async fn a_slot_decided_again_is_listed_once(subject: Subject) -> Kept {
    let job = subject.put(strict(1)?).await?;
    subject.missed(job.id, 71).await?;
    let stands = subject.job(job.id).await?;
    let astray = Job {
        next_slot: job.next_slot,
        slot_last: None,
        version: stands.version.next(),
        ..Job::clone(&stands)
    };
    subject
        .change(&stands, (astray, Vec::new()), RunsOfChange::Keep)
        .await?;
    let run = subject.claimed(job.id).await?;
    assert_eq!(subject.slots(job.id, 0, 999).await?, from_ref(&run));
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    let ended = subject.run(run.id).await?;
    assert_eq!(ended.state, RunState::Succeeded);
    assert_eq!(subject.slots(job.id, 0, 999).await?, [ended]);
    Ok(())
}

pub async fn slots_taken_back_and_forgotten_are_not_listed(subject: Subject) -> Kept {
    let job = subject.put(job(1)?).await?;
    subject.ready(job.id).await?;
    let stands = subject.job(job.id).await?;
    let edited = stands.edited(None, Definition::clone(&job.def), at(58), &someone());
    subject
        .change(&stands, edited, RunsOfChange::TakeBack)
        .await?;
    assert_eq!(subject.slots(job.id, 0, 999).await?, []);
    let run = subject.claimed(job.id).await?;
    subject.settle(settlement(&run, Verdict::Succeed)).await?;
    assert_eq!(subject.seconds(job.id, 0, 999).await?, [60]);
    let day = std::time::Duration::from_secs(DAY as u64);
    let keep = Keep {
        now: at(9 * DAY),
        history: day,
        finished: day,
    };
    while subject.store.retain(&keep).await?.more {}
    assert_eq!(subject.slots(job.id, 0, 999).await?, []);
    Ok(())
}
