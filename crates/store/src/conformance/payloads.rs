//! Payloads: large ones stay in the store until somebody asks for them.

use std::sync::Arc;

use bytes::Bytes;
use model::shard::ShardSet;
use model::{Definition, Job, Lane, Reason, Run, RunId, RunKind, Verdict, Version, limits};

use super::{DONE, Kept, Subject, at, job_with, settlement, slot, someone};
use crate::{BoxError, Claimed, DueRoom, PayloadOf, RunsOfChange, StartRun, Started};

/// So many bytes, no two in a row alike.
fn bytes(len: usize) -> Bytes {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// The largest that is read along, and the smallest that is not.
const SMALL: usize = limits::PAYLOAD_INLINE_MAX;
const LARGE: usize = SMALL + 1;
const LEFT: Option<u32> = Some(LARGE as u32);

impl Subject {
    async fn put_with(&self, number: u8, payload: usize) -> Result<Arc<Job>, BoxError> {
        let job = job_with(number, |def| def.payload = Some(bytes(payload)))?;
        self.put(job).await
    }

    async fn payload(&self, of: PayloadOf) -> Result<Option<Bytes>, BoxError> {
        let read = self.store.payloads(&[of]).await?;
        Ok(read.into_iter().next().flatten())
    }

    async fn ours(&self, run: RunId) -> Result<(Run, Arc<Job>), BoxError> {
        match self.claim(&self.leases, run).await? {
            Claimed::Ours(run, job) => Ok((*run, job)),
            other @ (Claimed::Stale | Claimed::LeaseLost) => Err(format!("{other:?}").into()),
        }
    }
}

/// Whether a job was read without the payload that it has, and is otherwise as it stands.
fn is_left(read: &Job, stands: &Job) -> bool {
    let mut whole = Job::clone(read);
    whole.payload_left = None;
    Arc::make_mut(&mut whole.def).payload = stands.def.payload.clone();
    read.payload_left == LEFT && read.def.payload.is_none() && whole == *stands
}

pub async fn plan_and_claims_leave_large_payloads_in_the_store(subject: Subject) -> Kept {
    let store = &subject.store;
    let small = subject.put_with(1, SMALL).await?;
    let large = subject.put_with(2, LARGE).await?;
    let due = subject.due(&ShardSet::ALL, at(60), 9).await?;
    assert_eq!(due.len(), 2);
    for job in &due {
        assert!(*job == small || is_left(job, &large), "{job:?}");
    }
    let due = store.due_of(&[small.id, large.id], at(60)).await?;
    assert_eq!(due.jobs.first(), Some(&small));
    assert!(is_left(&due.jobs[1], &large));
    let whole = store.get_job(large.tenant, large.id).await?;
    assert_eq!(whole.as_ref(), Some(&*large));

    let (first, second) = (
        subject.ready(large.id).await?,
        subject.ready(large.id).await?,
    );
    let (_, job) = subject.ours(first.id).await?;
    let stands = subject.job(large.id).await?;
    assert!(is_left(&job, &stands), "{job:?}");
    let taken = store
        .claim_due(
            subject.presence(),
            &ShardSet::ALL,
            DueRoom::for_earliest(at(300), [9; Lane::COUNT]),
        )
        .await?;
    let named: Vec<_> = taken.iter().map(|(run, _)| run.id).collect();
    assert_eq!(named, [second.id]);
    assert!(is_left(&taken[0].1, &stands));
    subject.fence_first().await?;
    let orphans = store.orphans(&ShardSet::ALL, 9).await?;
    assert_eq!(orphans.len(), 2);
    assert!(orphans.iter().all(|orphan| is_left(&orphan.job, &stands)));
    Ok(())
}

pub async fn a_payload_is_read_at_the_version_it_belongs_to(subject: Subject) -> Kept {
    let job = subject.put_with(1, LARGE).await?;
    let first = PayloadOf::Job(job.id, Version::FIRST);
    let second = PayloadOf::Job(job.id, Version::FIRST.next());
    assert_eq!(subject.payload(first).await?, Some(bytes(LARGE)));
    assert_eq!(subject.payload(second).await?, None);
    let mut def = Definition::clone(&job.def);
    def.payload = Some(bytes(LARGE * 2));
    let after = job.edited(None, def, at(1), &someone());
    subject.change(&job, after, RunsOfChange::TakeBack).await?;
    assert_eq!(subject.payload(first).await?, None, "it is gone");
    assert_eq!(subject.payload(second).await?, Some(bytes(LARGE * 2)));
    let nobody = PayloadOf::Run(RunId::for_slot(job.id, slot(60)));
    let other = subject.put_with(2, 3).await?;
    let small = PayloadOf::Job(other.id, Version::FIRST);
    let named = [nobody, small, second, first];
    let read = subject.store.payloads(&named);
    let expected = [None, Some(bytes(3)), Some(bytes(LARGE * 2)), None];
    assert_eq!(read.await?, expected, "in the order asked for");
    assert_eq!(subject.store.payloads(&[]).await?, []);
    Ok(())
}

/// A run by hand with its own payload.
fn by_hand(job: &Job, nonce: u64, payload: usize) -> StartRun {
    let run = Run {
        id: RunId::of_request(job.id, at(30), nonce),
        kind: RunKind::Manual,
        slot: None,
        due_at: at(30),
        payload: Some(bytes(payload)),
        ..Run::of_slot(job, slot(30))
    };
    StartRun { run, force: false }
}

pub async fn a_large_payload_of_a_run_stays_with_it(subject: Subject) -> Kept {
    let job = subject.put_with(1, LARGE).await?;
    let ends = [
        (1, SMALL, Verdict::Succeed),
        (2, LARGE, Verdict::Succeed),
        (3, LARGE, Verdict::Bury(Reason::Refused)),
    ];
    for (nonce, size, verdict) in ends {
        let start = by_hand(&job, nonce, size);
        assert_eq!(subject.store.start_run(&start).await?, Started::Ready);
        let id = start.run.id;
        let (run, _) = subject.ours(id).await?;
        assert_eq!(run.payload_left, LEFT.filter(|_| size == LARGE));
        assert_eq!(run.payload.is_none(), size == LARGE);
        let own = PayloadOf::Run(id);
        assert_eq!(subject.payload(own).await?, Some(bytes(size)));
        // It is kept through a retry and a release.
        let again = subject.settle(settlement(&run, Verdict::RetryAt(at(40))));
        assert_eq!(again.await?, DONE);
        let (run, _) = subject.ours(id).await?;
        let released = subject.settle(settlement(&run, Verdict::Release));
        assert_eq!(released.await?, DONE);
        let (run, _) = subject.ours(id).await?;
        assert_eq!(subject.settle(settlement(&run, verdict)).await?, DONE);
        let ended = subject.run(id).await?;
        assert_eq!(
            (ended.payload, ended.payload_left),
            (Some(bytes(size)), None)
        );
        assert_eq!(subject.payload(own).await?, None, "it is in history");
    }
    // The first attempt of a run, ended at once.
    let start = by_hand(&job, 4, LARGE);
    subject.store.start_run(&start).await?;
    let (run, _) = subject.ours(start.run.id).await?;
    let ended = subject.settle(settlement(&run, Verdict::Succeed));
    assert_eq!(ended.await?, DONE);
    let ended = subject.run(start.run.id).await?;
    assert_eq!(ended.payload, Some(bytes(LARGE)));
    Ok(())
}
