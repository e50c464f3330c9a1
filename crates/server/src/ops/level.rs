//! Levels: a definition that says something new waits until every node can read it.

use model::level::NeedsLevel;
use model::{Definition, Level};
use store::{NodeInfo, Raised};

use super::error::OpError;
use super::fault::{Fault, FieldError};
use crate::api::Api;

/// Refuses a definition that a living node could not read. After this none that could not may join.
pub async fn check(api: &Api, def: &Definition) -> Result<(), OpError> {
    let NeedsLevel { level, field } = def.needs_level();
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
