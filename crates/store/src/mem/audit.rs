//! The audit log, and its seals.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use model::{Job, JobId, JobState, Tenant, TenantId, Timestamp, Version, limits};

use super::MemStore;
use super::state::State;
use crate::audit::{Change, DROP_ENTRIES_MAX, is_edited};
use crate::{
    Acting, AuditEntry, AuditRange, AuditStore, DroppedSeals, Gap, JobVersion, Page, Seal,
    StoreError,
};

#[derive(Default)]
pub(super) struct Log {
    /// The last number that was given.
    seq: u64,
    entries: BTreeMap<u64, AuditEntry>,
    seals: BTreeMap<u64, Seal>,
}

impl State {
    /// Enters a change; the lock is held until it is made.
    pub(super) fn audit(&mut self, change: Change) {
        let acting = Arc::clone(&self.acting);
        self.audit_as(&acting, change);
    }

    /// Whoever asked for what it follows from.
    pub(super) fn audit_as(&mut self, acting: &Acting, change: Change) {
        let log = &mut self.log;
        log.seq += 1;
        let text = |it: &Option<Arc<str>>| it.as_deref().map(str::to_owned);
        let entry = AuditEntry {
            seq: log.seq,
            at: self.now,
            tenant: change.tenant,
            actor: acting.name.to_string(),
            key: acting.key,
            address: text(&acting.address),
            request: text(&acting.request),
            action: change.action.as_str().to_owned(),
            subject: change.subject,
            before: change.before,
            after: change.after,
        };
        log.entries.insert(log.seq, entry);
    }

    /// A job that recurs and has come to its end is entered; a one-off says so by its run.
    pub(super) fn audit_end(&mut self, job: &Job) {
        let was = self.jobs.get(&job.id).map(|job| job.state);
        if was == Some(JobState::Active) && crate::audit::is_end(job) {
            let note = job.note.as_deref();
            self.audit(Change::job_moved(job.tenant, job.id, job.state, note));
        }
    }

    /// Keeps what a job was, if it is changed.
    pub(super) fn keep_version(&mut self, before: &Arc<Job>, after: &Job) {
        if !is_edited(before, after) {
            return;
        }
        let kept = JobVersion {
            job: Arc::clone(before),
            ended_at: after.updated_at,
            ended_by: self.acting.name.to_string(),
        };
        self.versions.insert((before.id, before.version), kept);
        let of_job = self.versions_of(before.id).map(|(version, _)| version);
        let old: Vec<Version> = of_job.rev().skip(limits::VERSIONS_MAX).collect();
        for version in old {
            self.versions.remove(&(before.id, version));
        }
    }

    fn versions_of(&self, job: JobId) -> impl DoubleEndedIterator<Item = (Version, &JobVersion)> {
        let all = (job, Version(0))..=(job, Version(u32::MAX));
        let found = self.versions.range(all);
        found.map(|((_, version), kept)| (*version, kept))
    }

    /// Where the job stands is as it is now.
    fn as_it_stands(&self, tenant: TenantId, kept: &JobVersion) -> Option<JobVersion> {
        let stands = self.get_job(tenant, kept.job.id)?;
        let job = Job {
            key: kept.job.key.clone(),
            version: kept.job.version,
            updated_at: kept.job.updated_at,
            def: Arc::clone(&kept.job.def),
            ..stands
        };
        let job = Arc::new(self.with_calendars(job));
        Some(JobVersion {
            job,
            ..kept.clone()
        })
    }

    pub(super) fn audit_tenant(&mut self, before: Option<&Tenant>, after: Option<&Tenant>) {
        if let Some(change) = Change::tenant(before, after) {
            self.audit(change);
        }
    }
}

impl Log {
    fn list(&self, range: &AuditRange) -> Vec<AuditEntry> {
        let between = |seq: u64| seq > range.after && seq < range.before;
        let theirs = |entry: &&AuditEntry| {
            between(entry.seq) && range.tenant.is_none_or(|tenant| tenant == entry.tenant)
        };
        let found = self.entries.values().filter(theirs);
        if range.newest_first {
            found.rev().take(range.limit).cloned().collect()
        } else {
            found.take(range.limit).cloned().collect()
        }
    }

    fn find(&self, gaps: &[Gap], limit: usize) -> Vec<AuditEntry> {
        let is_in = |entry: &&AuditEntry| gaps.iter().any(|gap| gap.contains(entry.seq));
        let found = self.entries.values().filter(is_in);
        found.take(limit).cloned().collect()
    }

    fn put(&mut self, seal: &Seal) -> bool {
        let last = self.seals.last_key_value().map_or(0, |(number, _)| *number);
        let is_next = seal.number == last + 1;
        if is_next {
            self.seals.insert(seal.number, seal.clone());
        }
        is_next
    }

    fn drop_sealed(&mut self, seals: &[Seal]) -> bool {
        if seals.is_empty() || !seals.iter().all(|it| self.seals.contains_key(&it.number)) {
            return false;
        }
        for seal in seals {
            self.seals.remove(&seal.number);
            self.entries.retain(|seq, _| !seal.holds(*seq));
        }
        true
    }

    fn drop_unsealed(&mut self, until: Timestamp) -> Vec<u64> {
        let sealed = self.seals.last_key_value().map_or(0, |(_, seal)| seal.to);
        let unsealed = self.entries.range(sealed + 1..);
        let max = usize::try_from(DROP_ENTRIES_MAX).unwrap_or(usize::MAX);
        let old = unsealed.take(max).filter(|(_, entry)| entry.at <= until);
        let old: Vec<u64> = old.map(|(seq, _)| *seq).collect();
        for seq in &old {
            self.entries.remove(seq);
        }
        old
    }
}

/// What somebody who owns the database could do, for whoever checks the checks.
impl MemStore {
    pub fn edit_audit(&self, edit: impl FnOnce(&mut BTreeMap<u64, AuditEntry>)) {
        edit(&mut self.state().log.entries);
    }

    pub fn edit_seals(&self, edit: impl FnOnce(&mut BTreeMap<u64, Seal>)) {
        edit(&mut self.state().log.seals);
    }
}

#[async_trait]
impl AuditStore for MemStore {
    async fn list_versions(
        &self,
        tenant: TenantId,
        job: JobId,
        page: Page<Version>,
    ) -> Result<Vec<JobVersion>, StoreError> {
        let state = self.state();
        let kept = state.versions_of(job).rev();
        let kept = kept.filter(|(version, _)| page.before.is_none_or(|it| *version < it));
        let kept = kept.take(page.limit);
        let found = kept.filter_map(|(_, kept)| state.as_it_stands(tenant, kept));
        Ok(found.collect())
    }

    async fn get_version(
        &self,
        tenant: TenantId,
        job: JobId,
        version: Version,
    ) -> Result<Option<JobVersion>, StoreError> {
        let state = self.state();
        let mut kept = state.versions_of(job);
        let kept = kept.find(|(kept, _)| *kept >= version);
        Ok(kept.and_then(|(_, kept)| state.as_it_stands(tenant, kept)))
    }

    async fn list_audit(&self, range: &AuditRange) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.state().log.list(range))
    }

    async fn find_audit(&self, gaps: &[Gap], limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.state().log.find(gaps, limit))
    }

    async fn put_seal(&self, seal: &Seal) -> Result<bool, StoreError> {
        Ok(self.state().log.put(seal))
    }

    async fn list_seals(&self, after: u64, limit: usize) -> Result<Vec<Seal>, StoreError> {
        let state = self.state();
        let seals = state.log.seals.range(after + 1..).map(|(_, seal)| seal);
        Ok(seals.take(limit).cloned().collect())
    }

    async fn last_seal(&self) -> Result<Option<Seal>, StoreError> {
        let state = self.state();
        Ok(state
            .log
            .seals
            .last_key_value()
            .map(|(_, seal)| seal.clone()))
    }

    async fn drop_sealed(&self, seals: &[Seal], said: &DroppedSeals) -> Result<bool, StoreError> {
        let mut state = self.state();
        let dropped = state.log.drop_sealed(seals);
        if dropped {
            state.audit(Change::audit_dropped(said));
        }
        Ok(dropped)
    }

    async fn drop_unsealed(&self, until: Timestamp) -> Result<u64, StoreError> {
        let mut state = self.state();
        let dropped = state.log.drop_unsealed(until);
        if let Some(change) = Change::unsealed_dropped(&dropped) {
            state.audit(change);
        }
        Ok(dropped.len() as u64)
    }
}
