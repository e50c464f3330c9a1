//! Feature levels: what whoever reads a definition has to know.
//!
//! A definition that says something new needs a higher level than one that does not. The store has a level, the highest that
//! any of its definitions may need; it only grows, and only to what every living node knows. A node below it may not join. So
//! no node ever meets a definition that it cannot read, or would misread.

use crate::exit::ExitMap;
use crate::handed::Completion;
use crate::job::Definition;
use crate::mask;
use crate::quota::Quota;
use crate::redirect::Redirects;
use crate::target::Target;
use crate::tenant::TenantEdit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u16);

impl Level {
    /// What all definitions need, and every store has.
    pub const FIRST: Self = Self(1);
    /// What this binary knows.
    pub const OURS: Self = Self(7);
    /// Headers are templates: whoever does not know that would send them as they are.
    const TEMPLATES: Self = Self(2);
    /// How a target is called, what its answer means, and whether it reports later: whoever does not know that would misread it.
    /// And a tenant's runs a day, whose reason in history older nodes cannot read, and its proxy, which they would call past.
    pub const OUTSIDE: Self = Self(3);
    /// Targets that are commands.
    const COMMANDS: Self = Self(4);
    /// Alerts: whoever does not know them would send none, and would sign none for the tenant they are of.
    pub const ALERTS: Self = Self(5);
    /// Exit codes that ask for another attempt, or are named as failures.
    const EXIT_CODES: Self = Self(6);
    /// Targets that are scripts.
    const SCRIPTS: Self = Self(7);
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

/// What a definition needs, and the field on whose account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeedsLevel {
    pub level: Level,
    pub field: &'static str,
}

impl Definition {
    /// The highest level that anything in it needs. Whoever adds a field, a kind of target or a word that the version before
    /// cannot read gives it the next level here, raises `OURS`, and lays down the stored form in a golden file.
    pub fn needs_level(&self) -> NeedsLevel {
        let Self {
            schedule: _,
            target,
            payload: _,
            retry: _,
            timeout: _,
            lane: _,
            overlap: _,
            catch_up: _,
            spread: _,
            delivery: _,
            completion,
            start_within: _,
            finish_within: _,
            pause_after_failures,
            labels: _,
        } = self;
        let target = NeedsLevel {
            level: target.needs_level(),
            field: "target",
        };
        let outside = |field| NeedsLevel {
            level: Level::OUTSIDE,
            field,
        };
        let completion = match completion {
            Completion::Answer => target,
            Completion::Callback { .. } => target.max(outside("completion")),
        };
        match pause_after_failures {
            None => completion,
            Some(_) => completion.max(outside("pause_after_failures")),
        }
    }
}

impl TenantEdit {
    /// Nodes that do not know a quota would neither mind it nor read what came of it.
    pub fn needs_level(&self) -> NeedsLevel {
        let bounds =
            |(quota, max): &(Quota, Option<u64>)| *quota == Quota::RunsDay && max.is_some();
        let level = if self.quotas.iter().any(bounds) {
            Level::OUTSIDE
        } else {
            Level::FIRST
        };
        let field = "quotas.runs_day_max";
        NeedsLevel { level, field }
    }
}

impl Target {
    fn needs_level(&self) -> Level {
        match self {
            Self::Http(http) => {
                let is_new = !http.keep_headers.is_empty()
                    || http.success.is_some()
                    || http.redirects != Redirects::None
                    || http.path.is_some()
                    || http.body.is_some()
                    || http.tls.is_some();
                let headers = http.headers.iter();
                let of_headers = headers.map(|(_, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    if !value.contains("{{") && !value.contains("{%") {
                        Level::FIRST
                    } else if mask::names_secrets_only(&value) {
                        Level::TEMPLATES
                    } else {
                        Level::OUTSIDE
                    }
                });
                let least = if is_new { Level::OUTSIDE } else { Level::FIRST };
                of_headers.fold(least, Level::max)
            }
            Self::Shell(shell) => {
                let ExitMap {
                    success: _,
                    retry,
                    fail,
                    dead: _,
                } = &shell.exit;
                if retry.is_empty() && fail.is_empty() {
                    Level::COMMANDS
                } else {
                    Level::EXIT_CODES
                }
            }
            Self::Python(_) => Level::SCRIPTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::ExitCodes;
    use crate::target::HttpTarget;

    #[test]
    fn a_command_needs_nodes_that_know_commands() {
        let mut shell = crate::ShellTarget::new(["/bin/true"]).unwrap();
        shell.exit.dead = ExitCodes::new([64]);
        let level = |shell: &crate::ShellTarget| Target::Shell(shell.clone()).needs_level();
        assert_eq!(level(&shell), Level::COMMANDS);
        shell.exit.retry = ExitCodes::new([75]);
        assert_eq!(level(&shell), Level::EXIT_CODES);
        let script = crate::PythonTarget::new("print(1)").unwrap();
        assert_eq!(Target::Python(script).needs_level(), Level::OURS);
        assert!(Level::COMMANDS < Level::OURS);
    }

    #[test]
    fn a_target_that_follows_redirects_needs_nodes_that_do() {
        let mut target = HttpTarget::new("http://a/", None).unwrap();
        assert_eq!(Target::Http(target.clone()).needs_level(), Level::FIRST);
        target.redirects = Redirects::SameOrigin;
        assert_eq!(Target::Http(target).needs_level(), Level::OUTSIDE);
    }
}
