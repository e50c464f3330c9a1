//! Settings of scripts: which interpreters a node has for them, as whom they run, and how much they may take.

use std::path::PathBuf;
use std::sync::Arc;

use executor::shell::{Commands, Folder, ProcessLimits, PythonConfig, ShellConfig, THIS_PROGRAM};

use super::Config;
use super::settings::{Setting, count, read_into};
use super::shell::{MIB, PROCESSES_MAX_MAX, RUNNING_MAX_MAX, mib, run_as};
use crate::failure::Failure;

/// Where Debian and others have it.
const BWRAP: &str = "/usr/bin/bwrap";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PythonSettings {
    pub allow: Commands,
    /// The name of whom scripts run as, outside of their sandboxes.
    pub user: Option<String>,
    pub bwrap: PathBuf,
    pub running_max: usize,
    pub processes_max: usize,
    /// In MiB.
    pub memory_max: u64,
    /// In MiB.
    pub disk_max: u64,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self {
            allow: Commands::default().of_scripts(),
            user: None,
            bwrap: BWRAP.into(),
            running_max: 32,
            processes_max: 64,
            memory_max: 1_024,
            disk_max: 256,
        }
    }
}

impl Config {
    /// How scripts are run; none where none may be.
    pub(crate) fn python(&self) -> Result<Option<PythonConfig>, Failure> {
        let PythonSettings {
            allow,
            user,
            bwrap,
            running_max,
            processes_max,
            memory_max,
            disk_max,
        } = &self.python;
        if allow.is_off() || !self.parts.execute {
            return Ok(None);
        }
        if user.as_deref() == Some("root") {
            let why = "python_user: no sandbox holds root: say somebody who may do little, such as --python-user nobody";
            return Err(Failure::usage(why));
        }
        let run_as = run_as("python", user.as_deref()).map_err(Failure::usage)?;
        let folder = Folder::open().map_err(|error| {
            Failure::usage(format!("python_allow: scripts have no folder: {error}"))
        })?;
        let shell = ShellConfig {
            commands: Arc::new(allow.clone()),
            run_as,
            limits: ProcessLimits {
                memory_max: memory_max * MIB,
                // With those that hold the sandbox. More there can be by no way that is known.
                processes_max: *processes_max as u64 + 8,
                file_max: disk_max * MIB,
            },
            running_max: *running_max,
            folder,
            supervisor: THIS_PROGRAM.into(),
        };
        Ok(Some(PythonConfig {
            shell,
            bwrap: bwrap.clone(),
            disk_max: disk_max * MIB,
            processes_max: *processes_max as u64,
        }))
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "python_allow",
        flag: "python-allow",
        value: "PATHS",
        help: "Interpreters that run jobs' scripts in sandboxes, with commas between them: programs by their absolute paths, such as /usr/bin/python3, or folders of programs with a slash at their ends; tenant_…= before one is for that tenant alone; none unless given",
        secret: false,
        set: |config, text| {
            let allow = text.parse::<Commands>().map(Commands::of_scripts);
            read_into(&mut config.python.allow, allow)
        },
        show: |config| config.python.allow.to_string(),
    },
    Setting {
        name: "python_user",
        flag: "python-user",
        value: "NAME",
        help: "The user that scripts run as outside of their sandboxes; the node's own unless given, but a node that runs as root needs it",
        secret: false,
        set: |config, text| {
            if text.contains(char::is_control) {
                return Err("a user's name is one line of text".to_owned());
            }
            config.python.user = (!text.is_empty()).then(|| text.to_owned());
            Ok(())
        },
        show: |config| config.python.user.clone().unwrap_or_default(),
    },
    Setting {
        name: "python_bwrap",
        flag: "python-bwrap",
        value: "PATH",
        help: "The program bubblewrap, 0.8 or later, that builds sandboxes",
        secret: false,
        set: |config, text| {
            if !text.starts_with('/') || text.contains(char::is_control) {
                return Err(format!("{text:?} is no absolute path"));
            }
            config.python.bwrap = text.into();
            Ok(())
        },
        show: |config| config.python.bwrap.display().to_string(),
    },
    Setting {
        name: "python_running_max",
        flag: "python-running-max",
        value: "COUNT",
        help: "How many scripts may run on this node at once; others wait, and their timeout runs",
        secret: false,
        set: |config, text| read_into(&mut config.python.running_max, count(text, RUNNING_MAX_MAX)),
        show: |config| config.python.running_max.to_string(),
    },
    Setting {
        name: "python_processes_max",
        flag: "python-processes-max",
        value: "COUNT",
        help: "How many processes and threads a script may have at once; it can start no more",
        secret: false,
        set: |config, text| {
            let count = count(text, PROCESSES_MAX_MAX);
            read_into(&mut config.python.processes_max, count)
        },
        show: |config| config.python.processes_max.to_string(),
    },
    Setting {
        name: "python_memory_max",
        flag: "python-memory-max",
        value: "MIB",
        help: "How much memory (address space) each process of a script may have, in MiB",
        secret: false,
        set: |config, text| read_into(&mut config.python.memory_max, mib(text)),
        show: |config| config.python.memory_max.to_string(),
    },
    Setting {
        name: "python_disk_max",
        flag: "python-disk-max",
        value: "MIB",
        help: "How much each of the three folders may hold that a script can write to, in MiB of memory",
        secret: false,
        set: |config, text| read_into(&mut config.python.disk_max, mib(text)),
        show: |config| config.python.disk_max.to_string(),
    },
];
