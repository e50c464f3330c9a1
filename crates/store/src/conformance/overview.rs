//! Overview: counts by minute, and what there is at the moment.

use std::time::Duration;

use model::rollup::{Count, Step};
use model::{
    JobState, Lane, PresenceId, Reason, Rollup, RollupRow, RunState, Tenant, TenantId, TenantName,
    Timestamp, Verdict, limits,
};

use super::{Kept, Subject, at, job, job_with, once, settlement};
use crate::{DueSpan, Keep, LiveCount, TenantDropped};

const OURS: TenantId = TenantId(uuid::Uuid::from_u128(12));
const ONE: PresenceId = PresenceId(uuid::Uuid::from_u128(1));
const TWO: PresenceId = PresenceId(uuid::Uuid::from_u128(2));

fn rollup(fired: u64) -> Rollup {
    let mut rollup = Rollup::default();
    for count in [
        Count::Fired(fired),
        Count::Ended(RunState::Succeeded, fired),
        Count::Ended(RunState::Dead, 1),
        Count::Skipped(Reason::Missed, 7),
        Count::Retried,
        Count::Lateness(Duration::from_millis(3)),
        Count::Took(Duration::from_secs(3)),
    ] {
        rollup.count(count);
    }
    rollup
}

fn row(tenant: TenantId, step: Step, secs: i64, by: PresenceId) -> RollupRow {
    RollupRow {
        tenant,
        step,
        at: at(secs),
        by,
        rollup: rollup(secs.unsigned_abs()),
    }
}

fn sum(of: &[i64]) -> Rollup {
    let mut sum = Rollup::default();
    of.iter()
        .for_each(|fired| sum.add(&rollup(fired.unsigned_abs())));
    sum
}

pub async fn rollups_of_all_nodes_are_added_up_and_written_over(subject: Subject) -> Kept {
    let store = subject.store.access();
    let rows = [
        row(OURS, Step::Minute, 60, ONE),
        row(OURS, Step::Minute, 120, ONE),
        row(OURS, Step::Minute, 120, TWO),
        row(OURS, Step::Minute, 180, TWO),
        row(OURS, Step::Quarter, 900, ONE),
        row(TenantId::DEFAULT, Step::Minute, 120, ONE),
    ];
    store.put_rollups(&rows).await?;
    store.put_rollups(&[]).await?;
    let read = |tenant, step, from, to| store.read_rollups(tenant, step, at(from), at(to));
    let found = read(OURS, Step::Minute, 60, 180).await?;
    assert_eq!(found, [(at(60), sum(&[60])), (at(120), sum(&[120, 120]))]);
    assert_eq!(read(OURS, Step::Minute, 61, 120).await?, []);
    let found = read(OURS, Step::Quarter, 0, 9_000).await?;
    assert_eq!(found, [(at(900), sum(&[900]))]);
    let found = read(TenantId::DEFAULT, Step::Minute, 0, 9_000).await?;
    assert_eq!(found, [(at(120), sum(&[120]))]);
    let first = row(OURS, Step::Minute, 60, ONE);
    let more = RollupRow {
        rollup: sum(&[60, 60]),
        ..first.clone()
    };
    for rows in [[&first], [&first], [&more], [&more]] {
        store.put_rollups(&rows.map(Clone::clone)).await?;
    }
    // Written again it is what was written last, and nothing twice.
    let found = read(OURS, Step::Minute, 0, 120).await?;
    assert_eq!(found, [(at(60), sum(&[60, 60]))]);
    Ok(())
}

async fn retain(subject: &Subject, now: Timestamp) -> Kept {
    let keep = Keep {
        now,
        history: limits::HISTORY_KEEP,
        finished: limits::FINISHED_KEEP,
    };
    while subject.store.retain(&keep).await?.more {}
    Ok(())
}

pub async fn planned_jobs_of_a_tenant_are_listed_in_pages_and_sampled(subject: Subject) -> Kept {
    let store = subject.store.access();
    for (number, secs) in [(1, 300), (2, 100), (3, 200), (4, 100), (5, 301), (6, 50)] {
        let mut job = once(number, secs)?;
        if number == 6 {
            job.tenant = OURS;
        }
        subject.put(job).await?;
    }
    let span = |after, sample| DueSpan {
        after,
        up_to: at(300),
        sample,
    };
    let tenant = TenantId::DEFAULT;
    let whole = store
        .list_due(tenant, &span(None, DueSpan::ALL), 100)
        .await?;
    let order: Vec<_> = whole.jobs.iter().map(|it| it.next_due_at()).collect();
    assert_eq!(order, [100, 100, 200, 300].map(|secs| Some(at(secs))));
    assert_eq!(whole.next, None);
    for reads in 1..=6 {
        let (mut jobs, mut after) = (Vec::new(), None);
        loop {
            let of = span(after, DueSpan::ALL);
            let page = store.list_due(tenant, &of, reads).await?;
            assert!(page.jobs.len() <= reads);
            jobs.extend(page.jobs);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // Within 64 ms pages come in any order.
        jobs.sort_by_key(|job| (job.next_due_at(), job.id));
        assert_eq!(jobs, whole.jobs, "{reads}");
    }
    // Ids of these jobs end in their number, twice.
    let some = store.list_due(tenant, &span(None, 0x0202 + 1), 100).await?;
    let places: Vec<u16> = some.jobs.iter().map(|it| it.id.place()).collect();
    assert_eq!(places, [0x0202, 0x0101]);
    assert_eq!(
        store
            .list_due(OURS, &span(None, DueSpan::ALL), 9)
            .await?
            .jobs
            .len(),
        1
    );
    Ok(())
}

pub async fn rollups_go_with_their_tenant_and_when_kept_long_enough(subject: Subject) -> Kept {
    let store = subject.store.access();
    let tenant = Tenant::new(OURS, TenantName::new("ours")?, at(0));
    store.create_tenant(&tenant).await?;
    // More than one step of retention removes.
    let many = (0..1_100).map(|minute| row(OURS, Step::Minute, minute * 60, ONE));
    let many: Vec<_> = many.collect();
    store.put_rollups(&many).await?;
    let quarters = [0, 900].map(|secs| row(OURS, Step::Quarter, secs, ONE));
    store.put_rollups(&quarters).await?;
    store
        .put_rollups(&[row(TenantId::DEFAULT, Step::Quarter, 900, ONE)])
        .await?;
    let left = async |step, tenant| {
        let all = store.read_rollups(tenant, step, at(0), at(90_000_000));
        all.await.map(|found| found.len())
    };
    retain(&subject, at(60).plus(Step::Minute.keep())).await?;
    assert_eq!(left(Step::Minute, OURS).await?, 1_098);
    assert_eq!(left(Step::Quarter, OURS).await?, 2);
    retain(&subject, at(0).plus(Step::Quarter.keep())).await?;
    assert_eq!(left(Step::Minute, OURS).await?, 0);
    assert_eq!(left(Step::Quarter, OURS).await?, 1);
    let dropped = store.drop_tenant(OURS, at(1)).await?;
    assert_eq!(dropped, TenantDropped::Done);
    assert_eq!(left(Step::Quarter, OURS).await?, 0);
    assert_eq!(left(Step::Quarter, TenantId::DEFAULT).await?, 1);
    Ok(())
}

pub async fn what_lives_and_what_is_not_active_is_counted(subject: Subject) -> Kept {
    let one = subject.put(job(1)?).await?;
    let critical = job_with(2, |def| def.lane = Lane::Critical)?;
    let critical = subject.put(critical).await?;
    for (number, state) in [
        (3, JobState::Paused),
        (4, JobState::Finished),
        (5, JobState::Finished),
        (6, JobState::Invalid),
        (7, JobState::Deleted),
    ] {
        let mut job = job(number)?;
        (job.state, job.next_slot) = (state, None);
        subject.put(job).await?;
    }
    subject.claimed(one.id).await?;
    let run = subject.claimed(critical.id).await?;
    let retry = settlement(&run, Verdict::RetryAt(at(999)));
    subject.settle(retry).await?;
    subject.ready(critical.id).await?;
    let store = subject.store.access();
    let mut counts = store.count_standing(100).await?;
    counts.live.sort();
    counts.jobs.sort();
    let live = |lane, state| LiveCount {
        tenant: TenantId::DEFAULT,
        lane,
        state,
        waiting: false,
        runs: 1,
    };
    let expected = [
        live(Lane::Critical, RunState::Ready),
        live(Lane::Critical, RunState::Retrying),
        live(one.def.lane, RunState::Ready),
    ];
    assert_eq!(counts.live, expected);
    let jobs = [
        (TenantId::DEFAULT, JobState::Paused, 1),
        (TenantId::DEFAULT, JobState::Finished, 2),
        (TenantId::DEFAULT, JobState::Invalid, 1),
    ];
    assert_eq!(counts.jobs, jobs);
    assert!(counts.live_complete && counts.jobs_complete);
    let few = store.count_standing(2).await?;
    assert_eq!(few.live.iter().map(|it| it.runs).sum::<u64>(), 2);
    assert!(!few.live_complete && !few.jobs_complete);
    Ok(())
}
