//! Runs of a day: what becomes of slots beyond the quota, and what nodes have counted.

use std::time::Duration;

use model::runs_day::{Day, RunCount, RunQuota};
use model::{
    Overlap, Quota, Reason, Run, RunState, Tenant, TenantEdit, TenantId, TenantName, Timestamp,
};

use super::completion::resting;
use super::{Kept, Subject, at, firing, job, job_with, skip, slot};
use crate::{BoxError, Fired, Firing, Keep, RunCountStore};

const OURS: TenantId = TenantId(uuid::Uuid::from_u128(12));
const TODAY: Day = Day(7);

fn over_quota(firing: Firing) -> Firing {
    Firing {
        decision: firing.decision.over_quota(),
        ..firing
    }
}

pub async fn a_slot_over_the_quota_is_skipped_and_the_job_moves_on(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(job(1)?).await?;
    let batch = [over_quota(firing(&job, at(60)))];
    let skipped = [Fired::Skipped(Reason::Quota)];
    assert_eq!(store.fire(leases, &batch).await?, skipped);
    assert_eq!(store.fire(leases, &batch).await?, skipped, "fired again");
    let entry = Run::skipped(&job, &skip(60, 60, Reason::Quota), at(60));
    assert_eq!(subject.runs().await?, [entry]);
    let stands = subject.job(job.id).await?;
    assert_eq!(
        (stands.next_slot, stands.slot_last),
        (Some(slot(120)), Some(at(60)))
    );
    let next = store.fire(leases, &[firing(&stands, at(120))]).await?;
    assert!(matches!(next[..], [Fired::Claimed(_)]), "{next:?}");
    Ok(())
}

/// It does not wait for a run that is in its way: none would be made.
pub async fn a_slot_over_the_quota_waits_for_no_run(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let queued = job_with(1, |def| def.overlap = Overlap::QueueAll { max: 9 })?;
    let job = subject.put(queued).await?;
    let first = subject.claimed(job.id).await?;
    let job = subject.job(job.id).await?;
    let fired = store
        .fire(leases, &[over_quota(firing(&job, at(115)))])
        .await?;
    assert_eq!(fired, [Fired::Skipped(Reason::Quota)]);
    let live = subject.runs().await?;
    let live: Vec<_> = live.iter().filter(|run| run.state.is_live()).collect();
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].id, first.id);
    Ok(())
}

pub async fn a_job_that_rests_after_each_run_goes_on_over_the_quota(subject: Subject) -> Kept {
    let Subject { store, leases, .. } = &subject;
    let job = subject.put(resting(1, Overlap::Skip)?).await?;
    let due = job.next_slot.ok_or("it has no slot")?;
    let batch = [over_quota(firing(&job, due.0))];
    assert_eq!(
        store.fire(leases, &batch).await?,
        [Fired::Skipped(Reason::Quota)]
    );
    let stands = subject.job(job.id).await?;
    assert!(stands.next_slot > Some(due), "{:?}", stands.next_slot);
    let runs = subject.runs().await?;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].state, RunState::Skipped);
    Ok(())
}

fn count(tenant: TenantId, day: Day, runs: u64) -> RunCount {
    RunCount { tenant, day, runs }
}

async fn found(subject: &Subject, max: u64) -> Result<RunQuota, BoxError> {
    let name = TenantName::new("ours")?;
    let tenant = Tenant::new(OURS, name.clone(), at(0));
    let edit = TenantEdit {
        quotas: vec![(Quota::RunsDay, Some(max))],
        ..TenantEdit::default()
    };
    let access = subject.store.access();
    access.create_tenant(&tenant.edited(&edit)).await?;
    Ok(RunQuota {
        tenant: OURS,
        name,
        limit: max,
        others: 0,
    })
}

pub async fn every_node_learns_what_the_others_have_counted(subject: Subject) -> Kept {
    let quota = found(&subject, 10).await?;
    let store: &dyn RunCountStore = subject.store.access();
    let (first, second) = (subject.leases.presence, subject.other.presence);
    let said = [count(OURS, TODAY, 3), count(TenantId::DEFAULT, TODAY, 8)];
    // What it has itself it knows better.
    let answered = store.count_runs(first, &said, TODAY).await?;
    assert_eq!(answered, std::slice::from_ref(&quota));
    let others = RunQuota { others: 3, ..quota };
    assert_eq!(store.count_runs(second, &[], TODAY).await?, [others]);
    let tomorrow = store.count_runs(second, &[], Day(8)).await?;
    assert_eq!(tomorrow[0].others, 0);
    store
        .count_runs(second, &[count(OURS, TODAY, 4)], TODAY)
        .await?;
    assert_eq!(store.runs_of_day(OURS, TODAY).await?, 7);
    assert_eq!(store.runs_of_day(TenantId::DEFAULT, TODAY).await?, 8);
    assert_eq!(store.runs_of_day(OURS, Day(6)).await?, 0);
    Ok(())
}

pub async fn a_count_that_is_said_again_changes_nothing(subject: Subject) -> Kept {
    let store: &dyn RunCountStore = subject.store.access();
    let me = subject.leases.presence;
    for _ in 0..2 {
        store
            .count_runs(me, &[count(OURS, TODAY, 3)], TODAY)
            .await?;
        assert_eq!(store.runs_of_day(OURS, TODAY).await?, 3);
    }
    // Some were counted and then not inserted.
    store
        .count_runs(me, &[count(OURS, TODAY, 2)], TODAY)
        .await?;
    assert_eq!(store.runs_of_day(OURS, TODAY).await?, 2);
    Ok(())
}

pub async fn counts_of_days_before_yesterday_are_forgotten(subject: Subject) -> Kept {
    let store: &dyn RunCountStore = subject.store.access();
    let now = Timestamp::from_millis(86_400_000 * 9 + 5);
    let days = [Day(6), Day(7), Day(8), Day(9)];
    let said = days.map(|day| count(OURS, day, 1));
    store
        .count_runs(subject.leases.presence, &said, Day(9))
        .await?;
    let keep = Keep {
        now,
        history: Duration::MAX,
        finished: Duration::MAX,
    };
    while subject.store.retain(&keep).await?.more {}
    let mut kept = Vec::new();
    for day in days {
        kept.push(store.runs_of_day(OURS, day).await?);
    }
    assert_eq!(kept, [0, 0, 1, 1]);
    Ok(())
}
