//! Settings of commands: which a node may start, as whom, and how much they may take.

use std::sync::Arc;

use executor::shell::{Commands, Folder, ProcessLimits, RunAs, ShellConfig, THIS_PROGRAM};
use nix::unistd::{Uid, User};

use super::Config;
use super::settings::{Setting, count, read_into};
use crate::failure::Failure;

pub(super) const MIB: u64 = 1024 * 1024;
pub(super) const RUNNING_MAX_MAX: usize = 10_000;
pub(super) const PROCESSES_MAX_MAX: usize = 100_000;
const MIB_MIN: u64 = 16;
const MIB_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellSettings {
    pub allow: Commands,
    /// The name of whom commands run as.
    pub user: Option<String>,
    pub running_max: usize,
    pub processes_max: usize,
    /// In MiB.
    pub memory_max: u64,
    /// In MiB.
    pub file_max: u64,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            allow: Commands::default(),
            user: None,
            running_max: 64,
            processes_max: 256,
            memory_max: 4_096,
            file_max: 16 * 1_024,
        }
    }
}

impl Config {
    /// How commands are started; none where none may be.
    pub(crate) fn shell(&self) -> Result<Option<ShellConfig>, Failure> {
        let ShellSettings {
            allow,
            user,
            running_max,
            processes_max,
            memory_max,
            file_max,
        } = &self.shell;
        if allow.is_off() || !self.parts.execute {
            return Ok(None);
        }
        let run_as = run_as("shell", user.as_deref()).map_err(Failure::usage)?;
        let folder = Folder::open().map_err(|error| {
            Failure::usage(format!("shell_allow: commands have no folder: {error}"))
        })?;
        Ok(Some(ShellConfig {
            commands: Arc::new(allow.clone()),
            run_as,
            limits: ProcessLimits {
                memory_max: memory_max * MIB,
                processes_max: *processes_max as u64,
                file_max: file_max * MIB,
            },
            running_max: *running_max,
            folder,
            supervisor: THIS_PROGRAM.into(),
        }))
    }

    /// Said at the start.
    pub(crate) fn warning_of_commands(&self) -> Option<String> {
        let is_as_itself = self.shell.user.as_deref() == Some("root");
        (!self.shell.allow.is_off() && is_as_itself).then(|| {
            "commands run as root, because shell_user says so: they may do anything on this machine"
                .to_owned()
        })
    }
}

/// Whom commands run as, or scripts, if not as the node.
pub(super) fn run_as(what: &str, user: Option<&str>) -> Result<Option<RunAs>, String> {
    let me = Uid::effective();
    let Some(name) = user else {
        if me.is_root() {
            let or_root = if what == "shell" {
                ", or root if that is meant"
            } else {
                ""
            };
            return Err(format!(
                "{what}_user: this node runs as root, and what it starts would: say whom it is to run as, such as --{what}-user \
                 nobody{or_root}"
            ));
        }
        return Ok(None);
    };
    let found = User::from_name(name).map_err(|error| format!("{what}_user: {error}"))?;
    let found = found.ok_or_else(|| format!("{what}_user: this machine has no user {name}"))?;
    if found.uid == me {
        return Ok(None);
    }
    if !me.is_root() {
        return Err(format!(
            "{what}_user: only a node that runs as root can start anything as {name}"
        ));
    }
    Ok(Some(RunAs {
        user: found.uid.as_raw(),
        group: found.gid.as_raw(),
    }))
}

pub(super) fn mib(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (MIB_MIN..=MIB_MAX).contains(number))
        .ok_or_else(|| format!("{text:?} is not a number of MiB from {MIB_MIN} to {MIB_MAX}"))
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "shell_allow",
        flag: "shell-allow",
        value: "PATHS",
        help: "Commands that jobs may start, with commas between them: programs by their absolute paths, or folders of programs with a slash at their ends; tenant_…= before one is for that tenant alone; none unless given",
        secret: false,
        set: |config, text| read_into(&mut config.shell.allow, text.parse()),
        show: |config| config.shell.allow.to_string(),
    },
    Setting {
        name: "shell_user",
        flag: "shell-user",
        value: "NAME",
        help: "The user that commands run as; the node's own unless given, but a node that runs as root needs it",
        secret: false,
        set: |config, text| {
            if text.contains(char::is_control) {
                return Err("a user's name is one line of text".to_owned());
            }
            config.shell.user = (!text.is_empty()).then(|| text.to_owned());
            Ok(())
        },
        show: |config| config.shell.user.clone().unwrap_or_default(),
    },
    Setting {
        name: "shell_running_max",
        flag: "shell-running-max",
        value: "COUNT",
        help: "How many commands may run on this node at once; others wait, and their timeout runs",
        secret: false,
        set: |config, text| read_into(&mut config.shell.running_max, count(text, RUNNING_MAX_MAX)),
        show: |config| config.shell.running_max.to_string(),
    },
    Setting {
        name: "shell_processes_max",
        flag: "shell-processes-max",
        value: "COUNT",
        help: "How many processes a command may have at once; one with more is ended",
        secret: false,
        set: |config, text| {
            let count = count(text, PROCESSES_MAX_MAX);
            read_into(&mut config.shell.processes_max, count)
        },
        show: |config| config.shell.processes_max.to_string(),
    },
    Setting {
        name: "shell_memory_max",
        flag: "shell-memory-max",
        value: "MIB",
        help: "How much memory (address space) each process of a command may have, in MiB",
        secret: false,
        set: |config, text| read_into(&mut config.shell.memory_max, mib(text)),
        show: |config| config.shell.memory_max.to_string(),
    },
    Setting {
        name: "shell_file_max",
        flag: "shell-file-max",
        value: "MIB",
        help: "How large a file may become that a command writes, in MiB",
        secret: false,
        set: |config, text| read_into(&mut config.shell.file_max, mib(text)),
        show: |config| config.shell.file_max.to_string(),
    },
];
