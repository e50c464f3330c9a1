//! Handed over: attempts whose work is with the outside. Apart from `EngineStore`, because the usual path knows nothing of it.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::shard::ShardSet;
use model::{
    AttemptNo, Handed, JobId, PresenceId, Run, RunId, RunLog, TenantId, Timestamp, Version,
};

pub use model::view::{
    Appended, Beaten, EndedHanded, HandOver, HandedEnd, HandedOver, Heartbeat, Lapse, Reported,
};

use crate::{Leases, StoreError};

/// What a node writes when a target takes an attempt over, and what whoever has it says later. Who may say so is for the
/// caller to know: `model::view` compares the attempt, nothing else.
#[async_trait]
pub trait HandedStore: Send + Sync {
    /// The claims of these attempts go from `by` to the outside. Called again, it answers `Stale`.
    async fn hand_over(
        &self,
        by: PresenceId,
        items: &[HandOver],
        now: Timestamp,
    ) -> Result<Vec<HandedOver>, StoreError>;

    /// Trusted again. One that comes before the hand-over is written is the hand-over. A batch holds an attempt once at
    /// most.
    async fn heartbeat(
        &self,
        beats: &[Heartbeat],
        now: Timestamp,
    ) -> Result<Vec<Beaten>, StoreError>;

    /// Ends attempts as whoever had them says. Called again, it answers from the attempt's record. A batch holds a run once
    /// at most.
    async fn report(
        &self,
        reports: &[Reported],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError>;

    /// Attempts of `shards` that may have ended, the earliest first: see `Lapsing`.
    async fn lapsing(&self, shards: &ShardSet, lapsing: Lapsing)
    -> Result<Vec<Handed>, StoreError>;

    /// Ends attempts that were not heard of since they were read, under the leases of their shards.
    async fn lapse(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError>;

    /// What is kept of these runs, also of an attempt that has ended while its run goes on.
    async fn get_handed(&self, runs: &[RunId]) -> Result<Vec<Option<Handed>>, StoreError>;

    /// Whose these runs are, as long as they live. Whoever has the token of one knows no tenant.
    async fn whose(&self, runs: &[RunId]) -> Result<Vec<Option<Whose>>, StoreError>;

    /// The last checkpoint of a run that lives.
    async fn get_checkpoint(&self, run: RunId) -> Result<Option<Bytes>, StoreError>;

    /// Whether a run is at this attempt, and somebody holds it: a node, or the outside.
    async fn is_current(&self, run: RunId, attempt: AttemptNo) -> Result<bool, StoreError>;

    /// Appends to the logs of runs whose attempt is the current one. A batch holds a run once at most.
    async fn append_log(&self, appends: &[LogAppend]) -> Result<Vec<Appended>, StoreError>;

    /// What a run has said of its work; kept as long as its history.
    async fn get_log(&self, tenant: TenantId, run: RunId) -> Result<Option<RunLog>, StoreError>;

    /// Keys that tokens are made with, the newest first.
    async fn report_keys(&self) -> Result<Vec<ReportKey>, StoreError>;

    /// Writes a key, or how one that is there is wrapped. Those beyond `REPORT_KEYS_MAX` go, the oldest first.
    async fn put_report_key(&self, key: &ReportKey) -> Result<(), StoreError>;
}

/// Whose a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose {
    pub tenant: TenantId,
    pub job: JobId,
    /// The version at which its attempt was claimed.
    pub version: Version,
}

impl Whose {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            tenant: run.tenant,
            job: run.job,
            version: run.version,
        }
    }
}

/// Text for a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogAppend {
    pub run: RunId,
    pub attempt: AttemptNo,
    pub bytes: Bytes,
}

/// What tokens are made with.
#[derive(Clone, PartialEq, Eq)]
pub struct ReportKey {
    /// What tokens call it: letters and digits.
    pub id: String,
    pub created_at: Timestamp,
    /// The short name of the master key that it is wrapped by; none where there was none, and then it is plain.
    pub master_key: Option<String>,
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for ReportKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReportKey({})", self.id)
    }
}

/// Which attempts are read, to be ended if nothing was heard of them. Those that may not be ended yet are left out as far as a
/// store can see it, and read past by their place: however many there are, they do not hide the ones behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lapsing {
    /// Those that are trusted up to this moment or less.
    pub now: Timestamp,
    /// Of these, those that may be silent for this long or less, and those whose time is up.
    pub watched: Duration,
    /// Those behind this one, by the moment up to which it was trusted and by its run.
    pub after: Option<(Timestamp, RunId)>,
    pub limit: usize,
}

impl Lapsing {
    /// All of them, up to a limit.
    pub fn all(now: Timestamp, limit: usize) -> Self {
        Self {
            now,
            watched: Duration::MAX,
            after: None,
            limit,
        }
    }

    /// The place behind which it begins.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn place(&self) -> (i64, RunId) {
        let first = (Timestamp::MIN, RunId::from_bytes([0; 16]));
        let (until, run) = self.after.unwrap_or(first);
        (until.as_millis(), run)
    }
}
