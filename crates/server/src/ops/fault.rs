//! What can be wrong with what a client says, and where.

/// The kind of a fault: each is a problem of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not JSON at all.
    Syntax,
    /// Nested too deep.
    Depth,
    /// A field nobody knows.
    Unknown,
    /// A field that must be there.
    Missing,
    /// The same field twice.
    Duplicate,
    /// A value of the wrong type, or out of its range.
    Invalid,
    /// A schedule that cannot be read.
    Schedule,
    /// A one-off too long ago.
    Past,
    /// A schedule without a slot that could run.
    Never,
    /// A calendar that is not there.
    Calendar,
    /// Something that a node of the fleet does not know yet.
    Level,
    /// A target that this node may not call.
    Egress,
    /// A command that this node may not start.
    Command,
}

/// One fault: the path of the field (empty for the whole document), and how to put it right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct FieldError {
    pub fault: Fault,
    pub field: String,
    pub detail: String,
}

impl FieldError {
    pub fn new(fault: Fault, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            fault,
            field: field.into(),
            detail: detail.into(),
        }
    }

    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Fault::Invalid, field, detail)
    }
}
