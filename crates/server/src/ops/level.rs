//! Levels: a definition that says something new waits until every node can read it.

use model::level::NeedsLevel;
use model::{Definition, Level};
use store::{NodeInfo, Raised};

use super::error::OpError;
use super::fault::{Fault, FieldError};
use crate::api::Api;

/// Refuses a definition that a living node could not read. After this none that could not may join.
pub(super) async fn check(api: &Api, def: &Definition) -> Result<(), OpError> {
    check_level(api, def.needs_level()).await
}

/// The same for whatever else needs a level.
pub(super) async fn check_level(api: &Api, needs: NeedsLevel) -> Result<(), OpError> {
    let NeedsLevel { level, field } = needs;
    if level <= Level::FIRST {
        return Ok(());
    }
    match api.store.raise_level(level).await? {
        Raised::Done => Ok(()),
        Raised::Below(node) => {
            let NodeInfo { name, version, .. } = &*node;
            let detail = format!(
                "the node {name} ({version}) cannot read this yet: upgrade it, and try again"
            );
            Err(FieldError::new(Fault::Level, field, detail).into())
        }
    }
}
