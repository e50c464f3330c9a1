//! Audit: every change by anyone, entered in the transaction that makes it.
//!
//! Entries are numbered and never change. Numbers are given before a commit, so one may appear after a greater one, or
//! never; writers wait for nobody. Whoever seals them (`Seal`) says which numbers it has seen and which it has not, and
//! chains that by a code that only the holder of the key can make.
//!
//! In reading order: `action` (what is done), `forms` (before and after, as JSON), `seal`, `dropped` (segments that went).

mod action;
mod dropped;
#[cfg(any(test, feature = "mem", feature = "sqlite", feature = "postgres"))]
mod forms;
mod seal;

use async_trait::async_trait;
use model::{JobId, KeyId, TenantId, Timestamp, Version};

use crate::{JobVersion, Page, StoreError};

pub use action::Action;
pub use dropped::{DroppedSeals, FirstLast};
#[cfg(any(test, feature = "mem", feature = "sqlite", feature = "postgres"))]
pub(crate) use forms::{Change, is_edited, is_end};
#[cfg(any(test, feature = "mem", feature = "sqlite", feature = "postgres"))]
pub(crate) use seal::DROP_ENTRIES_MAX;
pub use seal::{DROP_SEALS_MAX, Gap, Seal};

/// One change, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub seq: u64,
    /// By the store's clock.
    pub at: Timestamp,
    /// Whose things were changed.
    pub tenant: TenantId,
    pub actor: String,
    pub key: Option<KeyId>,
    pub address: Option<String>,
    pub request: Option<String>,
    /// An [`Action`], or one that a newer version knows.
    pub action: String,
    /// What was changed: an id, or the name of what has no other.
    pub subject: String,
    /// JSON, with secrets masked.
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Entries with numbers between two, in the order of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditRange {
    /// None: of all tenants.
    pub tenant: Option<TenantId>,
    pub after: u64,
    pub before: u64,
    pub newest_first: bool,
    pub limit: usize,
}

impl AuditRange {
    /// Everything, from the oldest on.
    pub const ALL: Self = Self {
        tenant: None,
        after: 0,
        before: i64::MAX.unsigned_abs(),
        newest_first: false,
        limit: usize::MAX,
    };
}

/// The audit log: what is read of it, and how it is sealed and forgotten.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// What a job was before it was changed, newest first: those before a version. Of each job the newest
    /// `VERSIONS_MAX` are kept.
    async fn list_versions(
        &self,
        tenant: TenantId,
        job: JobId,
        page: Page<Version>,
    ) -> Result<Vec<JobVersion>, StoreError>;

    /// What a job was at a version. None for the one that stands, and for those that are not kept.
    async fn get_version(
        &self,
        tenant: TenantId,
        job: JobId,
        version: Version,
    ) -> Result<Option<JobVersion>, StoreError>;

    async fn list_audit(&self, range: &AuditRange) -> Result<Vec<AuditEntry>, StoreError>;

    /// Entries whose numbers lie in these gaps, in the order of numbers.
    async fn find_audit(&self, gaps: &[Gap], limit: usize) -> Result<Vec<AuditEntry>, StoreError>;

    /// Writes a seal, if it is the one after the last; false if another was faster.
    async fn put_seal(&self, seal: &Seal) -> Result<bool, StoreError>;

    /// By number after `after`, 0 for all.
    async fn list_seals(&self, after: u64, limit: usize) -> Result<Vec<Seal>, StoreError>;

    async fn last_seal(&self) -> Result<Option<Seal>, StoreError>;

    /// Drops the oldest segments: their entries, and their seals. That they went is an entry itself, which is given. False
    /// if some of them are gone already: nothing was dropped then.
    async fn drop_sealed(&self, seals: &[Seal], said: &DroppedSeals) -> Result<bool, StoreError>;

    /// Drops some of the entries that are in no segment and were made at or before `until`, where nothing is sealed. That
    /// they went is an entry itself. Answers how many went.
    async fn drop_unsealed(&self, until: Timestamp) -> Result<u64, StoreError>;
}
