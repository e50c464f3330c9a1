//! Runs whose target this node has no executor for: they are beyond it, and left to others. What this node fires it does not
//! claim then; what it has claimed before it could know it hands back at once, and no attempt is spent on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{Job, RunId, Timestamp, Verdict, limits};
use store::Settlement;

use crate::desk::Ending;
use crate::dispatch::{Dispatch, Holding, Stage, Work};
use crate::lock;
use crate::node::Context;
use crate::trouble::What;

/// How long a run is left alone before it is looked at again: an edit may have given its job another target.
const LEFT_FOR: Duration = Duration::from_secs(10);

/// The runs that were left, and until when by uptime.
#[derive(Debug, Default)]
pub struct Beyond(Mutex<BTreeMap<RunId, Duration>>);

impl Beyond {
    fn add(&self, run: RunId, uptime: Duration) {
        let mut left = lock(&self.0);
        if left.len() >= limits::BEYOND_MAX {
            left.retain(|_, until| *until > uptime);
        }
        // One that is not remembered is claimed and handed back again.
        if left.len() < limits::BEYOND_MAX {
            left.insert(run, uptime + LEFT_FOR);
        }
    }

    fn holds(&self, run: RunId, uptime: Duration) -> bool {
        lock(&self.0).get(&run).is_some_and(|until| *until > uptime)
    }

    /// How many there are.
    pub fn len(&self, uptime: Duration) -> usize {
        let left = lock(&self.0);
        left.values().filter(|until| **until > uptime).count()
    }
}

impl Context {
    pub fn can_execute(&self, job: &Job) -> bool {
        self.registry.get(job.def.target.kind()).is_some()
    }

    /// Whether a run was left to others a while ago.
    pub fn is_beyond(&self, run: RunId) -> bool {
        self.beyond.holds(run, self.shared.clock.uptime())
    }

    /// Leaves a run to others, and says so.
    pub fn leave_beyond(&self, job: &Job, run: RunId) {
        let uptime = self.shared.clock.uptime();
        self.beyond.add(run, uptime);
        let kind = job.def.target.kind();
        let reason = format!("this node has no executor for {kind} targets");
        let trouble = &self.shared.trouble;
        trouble.log(uptime, What::Beyond, job, run, &reason);
    }

    /// Takes claimed runs. Answers those that are beyond this node, to be handed back.
    pub fn take_claimed(&self, works: Vec<Work>, now: Timestamp) -> Vec<Settlement> {
        let (works, beyond): (Vec<Work>, Vec<Work>) = works
            .into_iter()
            .partition(|work| self.can_execute(&work.job));
        for work in &beyond {
            self.leave_beyond(&work.job, work.run.id);
        }
        self.dispatch.take(works, now);
        self.dispatch.refuse(beyond)
    }

    /// Hands back what is beyond this node.
    pub async fn hand_back(&self, beyond: Vec<Settlement>) {
        for settlement in beyond {
            if self
                .endings
                .send(Ending::settled(settlement))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

impl Dispatch {
    /// Knows claims only until they are handed back: none of them starts.
    fn refuse(&self, works: Vec<Work>) -> Vec<Settlement> {
        let mut guard = lock(&self.state);
        let mut refused = Vec::with_capacity(works.len());
        for work in works.into_iter().map(Arc::new) {
            let (id, job, attempt) = (work.run.id, work.run.job, work.run.attempt);
            if guard.claims.contains_key(&id) {
                continue;
            }
            guard.enter(job, id);
            guard
                .claims
                .insert(id, Holding::of(job, attempt, Stage::Ending));
            refused.push(work.undispatched(Verdict::Release, Timestamp::MIN));
        }
        refused
    }
}
