//! Ways to go a few steps of a run's life at once.

use model::{Job, RunId};

use super::bench::{Bench, run_of};
use super::world::at;
use crate::fire::Fire;

impl Bench {
    /// Plans, and fires what is due at this moment a little before it.
    pub(super) async fn fire_for(&self, fire: &mut Fire, due: i64) {
        self.rest(&mut self.plan()).await;
        self.pass_to(at(due - 30));
        self.rest(fire).await;
    }

    /// A run of a job that is due then, claimed by this node and not yet due.
    pub(super) async fn claimed(&self, job: Job, due: i64) -> RunId {
        let job = self.put(job).await;
        self.fire_for(&mut self.fire(), due).await;
        let id = run_of(&job, due);
        let run = self.mem.live_run(id).unwrap();
        assert_eq!(run.claim, Some(self.me()));
        id
    }

    /// The same at its due time, and under way.
    pub(super) async fn started(&self, job: Job, due: i64) -> RunId {
        let run = self.claimed(job, due).await;
        self.pass_to(at(due));
        self.rest(&mut self.dispatch()).await;
        self.quiet().await;
        assert!(self.target.runs().contains(&run));
        run
    }
}
