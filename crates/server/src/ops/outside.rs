//! What whoever has a handed-over attempt does, and what readers see of it. The right to do so is the attempt's token.

use bytes::Bytes;
use engine::{Heard, OutsideError, Taken};
use model::{Handed, LogPart, PresenceId, Progress, Report, Run, RunId, TenantId};

use super::error::OpError;
use super::runs;
use crate::api::Api;

fn refused(error: OutsideError) -> OpError {
    match error {
        OutsideError::Token => OpError::TokenRefused,
        OutsideError::Missing => OpError::RunMissing,
        OutsideError::Ended(record) => OpError::AttemptEnded(record.map(|it| it.outcome)),
        OutsideError::Unready => OpError::Unready,
        OutsideError::Store(error) => OpError::Write(error),
    }
}

pub async fn report(api: &Api, run: RunId, token: &str, report: Report) -> Result<Taken, OpError> {
    let taken = api.engine.outside().report(run, token, report).await;
    taken.map_err(refused)
}

pub async fn heartbeat(
    api: &Api,
    run: RunId,
    token: &str,
    (progress, checkpoint): (Option<Progress>, Option<Bytes>),
) -> Result<Heard, OpError> {
    let outside = api.engine.outside();
    let heard = outside.heartbeat(run, token, progress, checkpoint).await;
    heard.map_err(refused)
}

pub async fn append_log(
    api: &Api,
    run: RunId,
    token: &str,
    bytes: Bytes,
) -> Result<Heard, OpError> {
    let heard = api.engine.outside().append_log(run, token, bytes).await;
    heard.map_err(refused)
}

pub async fn checkpoint(api: &Api, run: RunId, token: &str) -> Result<Option<Bytes>, OpError> {
    let checkpoint = api.engine.outside().checkpoint(run, token).await;
    checkpoint.map_err(refused)
}

/// What a run has said of its work, from a place on; and whether more may come.
pub async fn log(
    api: &Api,
    tenant: TenantId,
    run: RunId,
    after: u64,
) -> Result<(LogPart, bool), OpError> {
    let found = runs::get(api, tenant, run).await?;
    let store = api.engine.store();
    let log = store.handed().get_log(tenant, run).await?;
    let (log, ended) = (log.unwrap_or_default(), !found.state.is_live());
    let part = if ended {
        log.read(after)
    } else {
        log.read_chars(after)
    };
    Ok((part, ended))
}

/// What is known of a run that is with the outside.
pub async fn handed(api: &Api, run: &Run) -> Result<Option<Handed>, OpError> {
    if run.claim != Some(PresenceId::OUTSIDE) {
        return Ok(None);
    }
    let store = api.engine.store();
    let mut kept = store.handed().get_handed(&[run.id]).await?;
    Ok(kept.pop().flatten())
}
