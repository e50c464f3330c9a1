//! Executors for tests and benches: no target at all.

use async_trait::async_trait;
use model::Report;

use crate::{Executor, WorkOrder};

/// Succeeds at once, and tells whoever made it.
pub struct Fake<F>(pub F);

#[async_trait]
impl<F> Executor for Fake<F>
where
    F: Fn(&WorkOrder) -> Report + Send + Sync + 'static,
{
    async fn execute(&self, order: WorkOrder) -> Report {
        (self.0)(&order)
    }
}
