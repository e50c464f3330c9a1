//! The `python` executor: one attempt is one script in a sandbox, under the same supervisor as a command.

use std::io::Read;
use std::path::PathBuf;

use async_trait::async_trait;
use model::{PythonTarget, Report, ShellTarget, Target};

use super::running::spawn;
use super::sandbox::Sandbox;
use super::spec::{self, Ended};
use super::work::{ShellConfig, ShellExecutor};
use crate::{Executor, WorkOrder};

/// Something that does nothing, and is in every system.
const NOTHING: &str = "/usr/bin/true";

/// How scripts run; `shell.commands` are the interpreters.
#[derive(Debug, Clone)]
pub struct PythonConfig {
    pub shell: ShellConfig,
    pub bwrap: PathBuf,
    /// Bytes that each folder may hold which a script can write to.
    pub disk_max: u64,
    /// Processes and threads that a script may have at once, without those that hold its sandbox.
    pub processes_max: u64,
}

/// Runs scripts on this machine, each in a sandbox of its own.
pub struct PythonExecutor {
    shell: ShellExecutor,
    bwrap: PathBuf,
    disk_max: u64,
    processes_max: u64,
}

impl PythonExecutor {
    /// Fails where there can be no sandbox: it has built one by then, and taken it away.
    pub fn new(config: PythonConfig) -> Result<Self, String> {
        let PythonConfig {
            shell,
            bwrap,
            disk_max,
            processes_max,
        } = config;
        let executor = Self {
            shell: ShellExecutor::new(shell)?,
            bwrap,
            disk_max,
            processes_max,
        };
        executor.probe()?;
        Ok(executor)
    }

    fn sandbox(&self, source: &str) -> Sandbox {
        Sandbox {
            bwrap: self.bwrap.clone(),
            source: source.to_owned(),
            disk_max: self.disk_max,
            processes_max: self.processes_max,
        }
    }

    /// Builds a sandbox as every script gets it.
    fn probe(&self) -> Result<(), String> {
        let said = |error: std::io::Error| error.to_string();
        if !self.bwrap.exists() {
            let path = self.bwrap.display();
            return Err(format!(
                "there is no {path}: install the package bubblewrap"
            ));
        }
        let nothing = ShellTarget::new([NOTHING]).map_err(|error| error.to_string())?;
        let mut order = self.shell.bare_order(&nothing, Some(self.sandbox("probe")));
        order.file = NOTHING.into();
        let spawned = spawn(self.shell.supervisor(), &order, &bytes::Bytes::new());
        let (mut control, mut output) = spawned.and_then(|it| it.into_blocking()).map_err(said)?;
        let ended: Ended = spec::read(&mut control).map_err(said)?;
        let mut why = String::new();
        let _broken = output.by_ref().take(1_024).read_to_string(&mut why);
        match (ended.exit, ended.why) {
            (Some(0), None) => Ok(()),
            (_, Some(why)) => Err(why),
            (exit, None) if why.trim().is_empty() => {
                Err(format!("bubblewrap ended with {exit:?} and says nothing"))
            }
            (_, None) => Err(why.trim().replace('\n', "; ")),
        }
    }

    async fn run(&self, order: &WorkOrder, python: &PythonTarget) -> Report {
        let sandbox = self.sandbox(&python.source);
        let ran = self.shell.run(order, &python.program, Some(sandbox));
        match ran.await {
            Ok(report) | Err(report) => report,
        }
    }
}

#[async_trait]
impl Executor for PythonExecutor {
    async fn execute(&self, order: WorkOrder) -> Report {
        match &order.job.def.target {
            Target::Python(python) => self.run(&order, python).await,
            Target::Http(_) | Target::Shell(_) => Report::failed("this executor runs scripts only"),
        }
    }
}
