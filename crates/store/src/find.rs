//! Runs that are wanted, where no index says which: pages are read, and each run is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use model::{JobId, Run, RunId, TenantId};

use crate::{ClientStore, Page, RunFind, StoreError};

/// Jobs that are read at once: they come with their payloads.
const JOBS_AT_ONCE: usize = 32;

/// Reads runs, and says of each whether it is wanted.
pub struct Finder<'a> {
    store: &'a dyn ClientStore,
    tenant: TenantId,
    find: &'a RunFind,
    /// Whether runs of a job are wanted, of those read so far.
    jobs: Mutex<BTreeMap<JobId, bool>>,
}

impl<'a> Finder<'a> {
    pub fn new(store: &'a dyn ClientStore, tenant: TenantId, find: &'a RunFind) -> Self {
        Self {
            store,
            tenant,
            find,
            jobs: Mutex::default(),
        }
    }

    /// One page as the store has it.
    pub async fn read(&self, page: Page<RunId>) -> Result<Vec<(Run, bool)>, StoreError> {
        let runs = self.store.list_runs(self.tenant, &self.find.filter, page);
        self.examine(runs.await?).await
    }

    /// Which of these runs are wanted.
    pub async fn examine(&self, runs: Vec<Run>) -> Result<Vec<(Run, bool)>, StoreError> {
        let matches = &self.find.matches;
        let fits = runs.into_iter().map(|run| {
            let fits = matches.fits_run(&run);
            (run, fits)
        });
        let mut runs: Vec<(Run, bool)> = fits.collect();
        if !matches.needs_job() {
            return Ok(runs);
        }
        let fitting = runs.iter().filter(|(_, fits)| *fits);
        let jobs: BTreeSet<JobId> = fitting.map(|(run, _)| run.job).collect();
        self.read_jobs(&jobs).await?;
        let known = self.known();
        for (run, fits) in &mut runs {
            *fits = *fits && known.get(&run.job).copied().unwrap_or_default();
        }
        drop(known);
        Ok(runs)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, bool>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs of a job that is gone, or cannot be read, are not wanted by what it was like.
    async fn read_jobs(&self, jobs: &BTreeSet<JobId>) -> Result<(), StoreError> {
        let unread = |job: &&JobId| !self.known().contains_key(*job);
        let unread: Vec<_> = jobs.iter().filter(unread).collect();
        for some in unread.chunks(JOBS_AT_ONCE) {
            let named: Vec<_> = some.iter().map(|job| (self.tenant, **job)).collect();
            let found = self.store.get_jobs(&named).await?;
            let mut known = self.known();
            for (job, found) in some.iter().zip(found) {
                let job_found = found.ok().flatten();
                let fits = job_found.is_some_and(|job| self.find.matches.fits_job(&job));
                known.insert(**job, fits);
            }
        }
        Ok(())
    }
}
