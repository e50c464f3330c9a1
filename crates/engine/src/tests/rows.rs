//! What is in the store of a bench: jobs and runs as a test puts them there and finds them.

use std::sync::Arc;

use futures_util::FutureExt;
use model::{
    Attempt, Job, JobId, PresenceId, Report, Run, RunId, RunKind, RunState, Skip, Slot, TenantId,
    Timestamp, Verdict,
};
use store::{
    ClientStore, Created, EngineStore, Hint, JobChange, JobChanged, NewJob, NodeStatus,
    RunsOfChange, Settled, Settlement, StartRun, Started,
};

use super::bench::{Bench, node, run_of};

impl Bench {
    pub(super) async fn put(&self, job: Job) -> Arc<Job> {
        let job = Arc::new(job);
        let new = NewJob {
            job: Arc::clone(&job),
            idempotency: None,
        };
        let created = self.mem.create_jobs(&[new]).await.unwrap();
        assert_eq!(created, [Created::Done]);
        job
    }

    /// The job as it stands.
    pub(super) async fn job(&self, id: JobId) -> Job {
        let job = self.mem.get_job(TenantId::DEFAULT, id).await.unwrap();
        job.unwrap()
    }

    /// The run as it stands, alive or ended.
    pub(super) async fn run(&self, id: RunId) -> Option<Run> {
        self.mem.get_run(TenantId::DEFAULT, id).await.unwrap()
    }

    /// What came of the job's slot so many milliseconds after the beginning of time.
    pub(super) async fn slot(&self, job: &Job, slot: i64) -> Option<Run> {
        self.run(run_of(job, slot)).await
    }

    /// In which state that is; none where nothing is decided.
    pub(super) async fn state(&self, job: &Job, slot: i64) -> Option<RunState> {
        self.slot(job, slot).await.map(|run| run.state)
    }

    /// A run by hand, due now.
    pub(super) async fn start(&self, job: &Job) -> RunId {
        self.start_at(job, self.now()).await
    }

    pub(super) async fn start_at(&self, job: &Job, due_at: Timestamp) -> RunId {
        let id = RunId::of_request(job.id, due_at, 1);
        let run = Run {
            id,
            kind: RunKind::Manual,
            slot: None,
            due_at,
            ..Run::of_slot(job, Slot(due_at))
        };
        let start = StartRun { run, force: false };
        let started = self.mem.start_run(&start).await.unwrap();
        assert_eq!(started, Started::Ready);
        id
    }

    /// Writes a change of a job, and says which claimed runs it marked.
    pub(super) async fn change(
        &self,
        before: Job,
        change: impl FnOnce(&Job, &Arc<str>) -> (Job, Vec<Skip>),
    ) -> Vec<RunId> {
        let (after, skipped) = change(&before, &Arc::from("someone"));
        let change = JobChange {
            before: Arc::new(before),
            after: Arc::new(after),
            skipped,
            runs: RunsOfChange::TakeBack,
        };
        let changed = self.mem.change_job(&change).await.unwrap();
        let JobChanged::Done { marked, .. } = changed else {
            panic!("{changed:?}");
        };
        marked
    }

    /// The run's attempt has failed, by no duty's doing, and is to be tried again then.
    pub(super) async fn fail(&self, run: RunId, again_at: Timestamp) {
        let run = self.mem.live_run(run).unwrap();
        let report = Report::failed("it did not work");
        let settlement = Settlement {
            attempt: Some(Attempt::new(run.attempt, None, self.now(), report)),
            verdict: Verdict::RetryAt(again_at),
            run,
        };
        let settled = self.mem.settle(self.me(), &[settlement]).await.unwrap();
        assert!(matches!(settled[..], [Settled::Done { .. }]), "{settled:?}");
    }

    /// Another node, which says so much of itself with a beat.
    pub(super) async fn other(&self, node_status: NodeStatus) -> PresenceId {
        let id = self.mem.join(&node("second", &["http"])).await.unwrap();
        self.mem.beat(id, &node_status).await.unwrap();
        id
    }

    /// The hints that this presence heard since the last call.
    pub(super) async fn hinted(&self, presence: PresenceId) -> Vec<Hint> {
        let hints = self.mem.hints(presence).now_or_never();
        hints.map_or_else(Vec::new, Result::unwrap)
    }
}
