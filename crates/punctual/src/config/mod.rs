//! Configuration: one struct, read once. Defaults, then the file, then the environment, then flags; what
//! comes later wins. Every value is read by the same function wherever it was given, so the layers cannot
//! disagree about what a duration looks like, and every refusal names the place.

mod address;
mod egress;
mod front;
pub(crate) mod log;
mod python;
mod settings;
mod shell;
mod sources;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::Parts;

pub(crate) use egress::EgressSettings;
pub(crate) use front::Front;
pub(crate) use python::PythonSettings;
pub(crate) use settings::{SETTINGS, Setting};
pub(crate) use shell::ShellSettings;
pub(crate) use sources::{Flags, Sources};

use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub data: PathBuf,
    /// Where the store is, if it is not the data folder's own.
    pub store: Option<String>,
    /// The password of the store, if its address has none.
    pub store_password: Option<Secret>,
    /// What secrets are sealed under, if it is given as a text.
    pub master_key: Option<Secret>,
    pub master_key_file: Option<PathBuf>,
    /// A program and its arguments, with spaces between them.
    pub master_key_command: Option<String>,
    /// Keys that only open what they once sealed.
    pub master_key_old_file: Option<PathBuf>,
    pub parts: Parts,
    /// Nothing fires.
    pub hold: bool,
    pub clock_skew_max: Duration,
    pub listen: SocketAddr,
    pub insecure_no_auth: bool,
    pub metrics_open: bool,
    /// Names it answers to on a loopback address, besides those of this machine.
    pub hosts: Vec<String>,
    /// How clients reach it.
    pub front: Front,
    /// Whom it may call.
    pub egress: EgressSettings,
    /// What it may start.
    pub shell: ShellSettings,
    pub python: PythonSettings,
    /// Its name, as given; see [`Config::node_at`].
    pub node: String,
    pub grace: Duration,
    pub running_max: usize,
    pub origin_calls_max: usize,
    pub history_keep: Duration,
    pub finished_keep: Duration,
    pub audit_keep: Duration,
    pub health_bound: Duration,
    pub log: String,
    pub log_format: LogFormat,
    /// Where each value came from, by the setting's name; those not here are defaults.
    pub origins: BTreeMap<&'static str, Origin>,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    File { path: PathBuf, line: usize },
    Environment { name: String },
    Flag { name: &'static str },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Environment { name } => f.write_str(name),
            Self::Flag { name } => write!(f, "--{name}"),
        }
    }
}

impl Config {
    pub(crate) fn load(sources: &Sources) -> Result<Self, Failure> {
        let mut config = settings::defaults();
        for given in sources.given()? {
            let refused = |why: String| {
                Failure::usage(format!("{}: {}: {why}", given.origin, given.setting.name))
            };
            (given.setting.set)(&mut config, &given.text).map_err(refused)?;
            config.origins.insert(given.setting.name, given.origin);
        }
        Ok(config)
    }

    /// What the node calls itself when it listens on this port. Several nodes of one machine may share a store:
    /// unless they are given names, the port distinguishes them.
    pub(crate) fn node_at(&self, port: u16) -> String {
        if self.store.is_none() || port == 0 || self.origins.contains_key("node") {
            return self.node.clone();
        }
        format!("{}:{port}", self.node)
    }

    /// The store's address, with the password that is set beside it unless it has its own.
    pub(crate) fn store_address(&self) -> Option<String> {
        let address = self.store.as_deref()?;
        match &self.store_password {
            Some(Secret(password)) if !address::has_password(address) => {
                Some(address::with_password(address, password))
            }
            Some(_) | None => Some(address.to_owned()),
        }
    }

    /// A setting's value as people see it, and where it came from.
    pub(crate) fn shown(&self, setting: &Setting) -> (String, String) {
        let value = (setting.show)(self);
        let value = if setting.secret && !value.is_empty() {
            "***".to_owned()
        } else {
            value
        };
        (value, self.origin_of(setting.name))
    }

    /// Where the value of a setting came from.
    pub(crate) fn origin_of(&self, name: &str) -> String {
        let origin = self.origins.get(name);
        origin.map_or("default".to_owned(), Origin::to_string)
    }

    /// Settings that do not go together. Nothing here is wrong enough to refuse.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let mut found = self.contradictions_of_front();
        if self.store_password.is_some() {
            match &self.store {
                None => found.push("store_password changes nothing without a store".to_owned()),
                Some(address) if address::has_password(address) => found.push(
                    "store_password changes nothing: the store's address says how to get its password"
                        .to_owned(),
                ),
                Some(_) => {}
            }
        }
        if self.finished_keep > self.history_keep {
            found.push(
                "finished_keep is longer than history_keep: finished jobs will stay without their runs"
                    .to_owned(),
            );
        }
        if self.health_bound <= model::limits::PRESENCE_TTL {
            found.push(format!(
                "health_bound is no longer than a restart takes to be noticed ({}): /healthz will fail without need",
                model::schedule::format_span(model::limits::PRESENCE_TTL)
            ));
        }
        found
    }

    /// Which of two keys is meant is not for us to guess.
    pub(crate) fn check_master_key(&self) -> Result<(), Failure> {
        let given = [
            ("master_key", self.master_key.is_some()),
            ("master_key_file", self.master_key_file.is_some()),
            ("master_key_command", self.master_key_command.is_some()),
        ];
        let given: Vec<_> = given.iter().filter(|(_, is_given)| *is_given).collect();
        match given.as_slice() {
            [(one, _), (other, _), ..] => Err(Failure::usage(format!(
                "{one} and {other} both say what the master key is: keep one of them"
            ))),
            [] | [_] => Ok(()),
        }
    }

    /// A part that is left out is for others to do, and a data folder's own store has no others.
    pub(crate) fn check_parts(&self) -> Result<(), Failure> {
        if self.store.is_some() || self.parts == Parts::default() {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "parts: {} is not enough while the store is the data folder's own, because no other node could do the \
             rest: leave it out, or share a database with --store postgres://…",
            self.parts
        )))
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
