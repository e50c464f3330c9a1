//! Events as we send them.

use serde::Serialize;

/// Something has changed: look now.
#[derive(Debug, Serialize)]
pub struct Event {
    /// When this was sent.
    pub at: String,
    /// The run that it is about; without one, it is about the tenant's jobs as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}
