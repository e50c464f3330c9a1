//! The `shell` executor: one attempt is one command, its exit code is the outcome.
//!
//! ```text
//!   node ──order, T, K──▶ supervisor ──▶ starter ──exec──▶ the command ──▶ whatever it starts
//!    ▲ ▲                    │  ▲                             │                 │
//!    │ └──────report────────┘  └───────────orphans───────────┴─────────────────┘
//!    └────────────────────────output (one pipe)──────────────┘
//! ```
//!
//! Supervisor and starter are this same binary. A supervisor gets every descendant of its command whose parent is gone, also
//! one that went into a session of its own, so it can end them all, and does when the command has exited, when the node says
//! so, and when the node is gone: the socket between them closes then, however the node ended. The starter sets what only a
//! process can set of itself (limits, session, user), and becomes the command.
//!
//! A script (`script.rs`) is the same with bubblewrap between the starter and its interpreter (`sandbox.rs`).
//!
//! What always holds: nothing that a command started outlives its supervisor, and no supervisor its node; nothing of the
//! node's environment and none of its files reaches a command; no output is waited for once everything has ended.

mod allow;
#[cfg(feature = "shell")]
mod family;
#[cfg(feature = "shell")]
mod folder;
#[cfg(feature = "shell")]
mod output;
#[cfg(feature = "shell")]
mod running;
#[cfg(feature = "shell")]
mod said;
#[cfg(feature = "shell")]
mod sandbox;
#[cfg(feature = "shell")]
mod script;
#[cfg(feature = "shell")]
mod spec;
#[cfg(feature = "shell")]
mod start;
#[cfg(feature = "shell")]
mod supervise;
#[cfg(feature = "shell")]
mod work;

pub use allow::{CommandRefused, Commands, Scripts};
#[cfg(feature = "shell")]
pub use folder::Folder;
#[cfg(feature = "shell")]
pub use script::{PythonConfig, PythonExecutor};
#[cfg(feature = "shell")]
pub use spec::{ProcessLimits, RunAs};
#[cfg(feature = "shell")]
pub use start::start;
#[cfg(feature = "shell")]
pub use supervise::supervise;
#[cfg(feature = "shell")]
pub use work::{ShellConfig, ShellExecutor};

/// The file that a process runs, also when another has come in its place.
pub const THIS_PROGRAM: &str = "/proc/self/exe";
/// The hidden subcommands of the binary that are a supervisor and a starter.
pub const SUPERVISE: &str = "supervise-command";
pub const START: &str = "start-command";
