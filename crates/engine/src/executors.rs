//! What this node can execute. Runs whose target it has no executor for are beyond it, and left to others: what it fires it
//! does not claim then; what it has claimed before it could know it hands back at once, and no attempt is spent on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{Executor, Registry};
use model::{Job, Outcome, RunId, limits};

use crate::board::Work;
use crate::clock::Clock;
use crate::gauges::Executed;
use crate::lock;
use crate::trouble::{Trouble, What};

/// How long a run is left alone before it is looked at again: an edit may have given its job another target.
const LEFT_FOR: Duration = Duration::from_secs(10);

pub(crate) struct Executors {
    registry: Registry,
    clock: Arc<dyn Clock>,
    trouble: Arc<Trouble>,
    executed: BTreeMap<&'static str, Executed>,
    /// The runs that were left, and until when by uptime.
    left: Mutex<BTreeMap<RunId, Duration>>,
}

impl Executors {
    pub(crate) fn new(
        registry: Registry,
        clock: Arc<dyn Clock>,
        trouble: Arc<Trouble>,
        executed: BTreeMap<&'static str, Executed>,
    ) -> Self {
        Self {
            registry,
            clock,
            trouble,
            executed,
            left: Mutex::default(),
        }
    }

    /// The executor for a job's target.
    pub(crate) fn of(&self, job: &Job) -> Option<&Arc<dyn Executor>> {
        self.registry.get(job.def.target.kind())
    }

    /// An executor has carried out an attempt at a job.
    pub(crate) fn count_executed(&self, job: &Job, outcome: Outcome) {
        let executed = self.executed.get(job.def.target.kind());
        if let Some(counter) = executed.and_then(|by| by.get(outcome as usize)) {
            counter.inc();
        }
    }

    pub(crate) fn can_execute(&self, job: &Job) -> bool {
        self.of(job).is_some()
    }

    /// Whether a run was left to others a while ago.
    pub(crate) fn is_beyond(&self, run: RunId) -> bool {
        let uptime = self.clock.uptime();
        let left = lock(&self.left);
        left.get(&run).is_some_and(|until| *until > uptime)
    }

    /// How many were.
    pub(crate) fn count_beyond(&self) -> usize {
        let uptime = self.clock.uptime();
        let left = lock(&self.left);
        left.values().filter(|until| **until > uptime).count()
    }

    /// Leaves a run to others, and says so.
    pub(crate) fn leave(&self, job: &Job, run: RunId) {
        let uptime = self.clock.uptime();
        {
            let mut left = lock(&self.left);
            if left.len() >= limits::BEYOND_MAX {
                left.retain(|_, until| *until > uptime);
            }
            // One that is not remembered is claimed and handed back again.
            if left.len() < limits::BEYOND_MAX {
                left.insert(run, uptime + LEFT_FOR);
            }
        }
        let kind = job.def.target.kind();
        let reason = format!("this node has no executor for {kind} targets");
        self.trouble.log(What::Beyond, job, run, &reason);
    }

    /// Those of the claimed runs that can start here, and those that are beyond this node.
    pub(crate) fn sort(&self, works: Vec<Arc<Work>>) -> (Vec<Arc<Work>>, Vec<Arc<Work>>) {
        let (able, beyond): (Vec<Arc<Work>>, Vec<Arc<Work>>) = works
            .into_iter()
            .partition(|work| self.can_execute(&work.job));
        for work in &beyond {
            self.leave(&work.job, work.run.id);
        }
        (able, beyond)
    }
}
