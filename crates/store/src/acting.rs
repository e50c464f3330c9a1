//! Who acts. Whoever serves a request says so once, around all of it, and every change that is written meanwhile is
//! entered in the audit log under that name. What nobody asked for is done by the system.

use std::sync::{Arc, LazyLock};

use model::KeyId;

/// Whoever asked for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acting {
    /// For people.
    pub name: Arc<str>,
    pub key: Option<KeyId>,
    /// Where the request came from.
    pub address: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
}

/// The name under which a node's own duties write.
pub const SYSTEM: &str = "system";

static NOBODY: LazyLock<Arc<Acting>> = LazyLock::new(Arc::default);

tokio::task_local! {
    static ACTING: Arc<Acting>;
}

impl Default for Acting {
    fn default() -> Self {
        Self {
            name: Arc::from(SYSTEM),
            key: None,
            address: None,
            request: None,
        }
    }
}

impl Acting {
    /// Who acts in this task; a task of its own that goes on for a request takes it along.
    pub fn now() -> Arc<Self> {
        let acting = ACTING.try_with(Arc::clone);
        acting.unwrap_or_else(|_| Arc::clone(&NOBODY))
    }

    /// Whatever is written meanwhile is written for this one.
    pub async fn during<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        ACTING.scope(self, work).await
    }
}
