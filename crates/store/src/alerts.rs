//! Alerts: the rules, the ends that they may be about, and where each alert stands.
//!
//! What always holds: an end that a rule may be about is noted in the transaction that writes it, as long as its tenant has a
//! rule for it; and it is forgotten in the transaction that writes what came of it. What is to be sent is in the store until
//! the run that delivers it is. So whatever crashes in between, no alert is lost, and none is sent for two runs.

use async_trait::async_trait;
use model::{
    Alert, AlertMove, AlertName, AlertState, Cause, JobId, RunId, TenantId, Timestamp, Version,
};

use crate::{QueueRun, StoreError};

/// What became of a rule that was to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertPut {
    Done,
    /// It stands at another version than the one named, or is not there.
    Conflict,
    /// As many of the tenant's are there as may be.
    Full,
    /// There is no such tenant, or it is about to go.
    NoTenant,
}

/// What became of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertsMoved {
    Done,
    /// Somebody else has written some of it meanwhile: nothing was.
    Stale,
    /// As many deliveries of this rule are under way as may be: nothing was written.
    Full,
    /// The job that delivers is gone: nothing was written.
    Missing,
}

/// Which alert: the rule, and the job that it is about.
pub type AlertKey = (TenantId, AlertName, JobId);

/// What is written about alerts at once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertMoves {
    /// Causes that were considered.
    pub causes: Vec<u64>,
    /// A key at most once.
    pub moves: Vec<AlertMove>,
    /// The run that delivers what they have come to.
    pub run: Option<QueueRun>,
}

/// An alert that fires, and the run that has recovered it if one has.
pub type FiringAlert = (AlertState, Option<(RunId, Timestamp)>);

#[async_trait]
pub trait AlertStore: Send + Sync {
    /// Writes a rule, if it still stands at `before` (none: there is none of that name yet).
    async fn put_alert(
        &self,
        alert: &Alert,
        before: Option<Version>,
    ) -> Result<AlertPut, StoreError>;

    async fn get_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
    ) -> Result<Option<Alert>, StoreError>;

    /// By name, after `after`.
    async fn list_alerts(
        &self,
        tenant: TenantId,
        after: Option<&AlertName>,
        limit: usize,
    ) -> Result<Vec<Alert>, StoreError>;

    /// Drops a rule with all of its alerts, if it still stands at that version.
    async fn drop_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
        before: Version,
    ) -> Result<bool, StoreError>;

    /// Ends that were noted and not considered yet, the oldest first.
    async fn alert_causes(&self, limit: usize) -> Result<Vec<Cause>, StoreError>;

    /// Where these alerts stand.
    async fn alert_states(&self, keys: &[AlertKey]) -> Result<Vec<Option<AlertState>>, StoreError>;

    /// Alerts of a rule, by job after `after`.
    async fn alerts_of(
        &self,
        tenant: TenantId,
        name: &AlertName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<AlertState>, StoreError>;

    /// Alerts of all tenants that are to be sent by now, the longest due first.
    async fn due_alerts(&self, now: Timestamp, limit: usize)
    -> Result<Vec<AlertState>, StoreError>;

    /// Alerts that fire, in the order of their keys after `after`, each with the first run of its job after the last cause that
    /// succeeded since.
    async fn firing_alerts(
        &self,
        after: Option<&AlertKey>,
        limit: usize,
    ) -> Result<Vec<FiringAlert>, StoreError>;

    /// Forgets causes, writes alerts over the steps before and inserts the run that delivers them: all of it, or nothing.
    async fn move_alerts(&self, moves: &AlertMoves) -> Result<AlertsMoved, StoreError>;
}
