use std::sync::Arc;

use model::{JobState, RunKind, RunState, TenantId, Verdict};

use super::super::SqliteStore;
use super::super::tests::{folder, open, spoil};
use super::super::writer::By;
use super::*;
use crate::conformance::{
    DONE, Subject, TestClock, after_completion, at, attempt, job, job_with, settlement, slot,
};
use crate::{Cancelled, ClientStore, EngineStore};

const DAY: i64 = 24 * 3_600;

async fn subject_over(store: &Arc<SqliteStore>) -> Subject {
    let store = store.clone();
    Subject::over(store, TestClock::default()).await.unwrap()
}

#[tokio::test]
async fn attempts_that_cannot_be_read_stay_as_they_are_when_their_run_is_marked() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = subject_over(&store).await;
    let id = subject.put(job(1).unwrap()).await.unwrap().id;
    let run = subject.claimed(id).await.unwrap();
    let retry = settlement(&run, Verdict::RetryAt(at(70)));
    assert_eq!(subject.settle(retry).await.unwrap(), DONE);
    store.claim(&subject.leases, &[run.id]).await.unwrap();
    let spoil = |db: &mut Db| Ok(db.conn.execute("UPDATE live SET attempts = x'00'", [])?);
    assert_eq!(store.writer.call(By::Client, 1, spoil).await.unwrap(), 1);
    let cancelled = store.cancel_run(TenantId::DEFAULT, run.id, at(71)).await;
    assert_eq!(cancelled.unwrap(), Cancelled::Marked);
    let read = |db: &mut Db| {
        let sql = "SELECT attempts FROM live WHERE ask IS NOT NULL";
        Ok(db.conn.query_row(sql, [], |row| row.get::<_, Vec<u8>>(0))?)
    };
    assert_eq!(store.writer.call(By::Client, 1, read).await.unwrap(), [0]);
}

#[tokio::test]
async fn an_unreadable_job_is_parked_by_the_end_of_its_run_only_if_it_rests() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = subject_over(&store).await;
    let schedule = after_completion(60).unwrap();
    let rests = job_with(1, |def| def.schedule = schedule).unwrap();
    for (job, state) in [
        (rests, JobState::Invalid),
        (job(2).unwrap(), JobState::Active),
    ] {
        let id = subject.put(job).await.unwrap().id;
        let run = subject.claimed(id).await.unwrap();
        spoil(&store, id).await;
        let settled = subject.settle(settlement(&run, Verdict::Succeed)).await;
        assert_eq!(settled.unwrap(), DONE);
        let read = move |db: &mut Db| Ok(standing(&db.conn, id)?.map(|(_, stands)| stands.state));
        assert_eq!(
            store.writer.call(By::Client, 1, read).await.unwrap(),
            Some(state)
        );
    }
}

#[tokio::test]
async fn of_the_newest_runs_those_that_were_under_way_at_a_moment_are_read() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let (one, other) = (Arc::new(job(1).unwrap()), job(2).unwrap());
    let id = one.id;
    let moment = at(DAY);
    let ended = move |job: &Job, secs: i64, settled: i64| {
        let run = Run::of_slot(job, slot(secs));
        let dispatched_at = attempt(&run, model::Outcome::Succeeded).dispatched_at;
        Run {
            state: RunState::Succeeded,
            dispatched_at,
            settled_at: Some(at(settled)),
            ..run
        }
    };
    let long = |secs| ended(&one, secs, DAY + 60);
    let skipped = Run {
        state: RunState::Skipped,
        ..long(DAY - 1)
    };
    let mut runs = vec![skipped, ended(&other, DAY - 2, DAY + 60)];
    // Over before the moment; not begun before it; too long ago.
    runs.extend([ended(&one, DAY - 3, DAY - 1), long(DAY), long(-1)]);
    runs.extend([5, 6, 7, 60, 600, 6_000, 60_000, 61_000].map(|ago| long(DAY - ago)));
    let read = move |db: &mut Db| {
        for run in runs.clone() {
            db.put_ended(&EndedRow::new(run)?)?;
        }
        let needs = Needs {
            past: Some(moment),
            ..Needs::default()
        };
        db.read_history(id, needs)
    };
    let past = store.writer.call(By::Client, 1, read).await.unwrap().past;
    let begun: Vec<_> = past.iter().map(|run| run.id.at()).collect();
    // Eight are read, and the one that was over by then is among them.
    let expected = [5, 6, 7, 60, 600, 6_000, 60_000];
    assert_eq!(begun, expected.map(|ago| at(DAY - ago)));
    let (kind, settled_at) = (RunKind::Slot, at(DAY + 60));
    let alike = |run: &Past| run.kind == kind && run.settled_at == settled_at;
    assert!(past.iter().all(alike), "{past:?}");
}
