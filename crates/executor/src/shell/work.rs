//! One attempt: the order to its supervisor, and what its end means.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::{Cost, ExitMeaning, Io, Outcome, Report, RetryHint, ShellTarget, Target, limits};
use nix::sys::signal::Signal;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::output::Output;
use super::running::{Over, Running, spawn};
use super::sandbox::Sandbox;
use super::spec::{Ended, Order, ProcessLimits, RunAs};
use super::{Commands, Folder, family, said};
use crate::progress::PartialOutput;
use crate::{Executor, WorkOrder};

/// What a command has in its environment unless its job says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const LANG: &str = "C.UTF-8";

/// What commands may be, and how they run.
#[derive(Debug, Clone)]
pub struct ShellConfig {
    pub commands: Arc<Commands>,
    /// None: as the node itself.
    pub run_as: Option<RunAs>,
    pub limits: ProcessLimits,
    /// Commands under way at once.
    pub running_max: usize,
    pub folder: Folder,
    /// The program that is a supervisor as its subcommand; it is this one.
    pub supervisor: PathBuf,
}

/// Starts commands on this machine.
pub struct ShellExecutor {
    config: ShellConfig,
    room: Arc<Semaphore>,
}

impl ShellExecutor {
    /// Fails where a command and what it starts could not be ended for certain.
    pub fn new(config: ShellConfig) -> Result<Self, String> {
        family::is_known().map_err(|error| {
            format!("the kernel does not say who a process's children are (CONFIG_PROC_CHILDREN): {error}")
        })?;
        let room = Arc::new(Semaphore::new(config.running_max));
        Ok(Self { config, room })
    }

    pub(super) async fn run(
        &self,
        order: &WorkOrder,
        shell: &ShellTarget,
        sandbox: Option<Sandbox>,
    ) -> Result<Report, Report> {
        let failed = |why: String| Report::failed(format!("not started: {why}"));
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|error| failed(error.to_string()))?;
        let spec = self.order(order, shell, sandbox);
        let (commands, tenant) = (Arc::clone(&self.config.commands), order.job.tenant);
        let payload = order.payload().cloned().unwrap_or_else(Bytes::new);
        let supervisor = self.config.supervisor.clone();
        let spawning = spawn_blocking(move || {
            let mut spec = spec;
            let program = spec.command.first().map_or("", String::as_str);
            let file = commands.resolve(tenant, program);
            // Another attempt finds the same.
            spec.file = file.map_err(|why| failed(why.to_string()).with_retry(RetryHint::Never))?;
            spawn(&supervisor, &spec, &payload).map_err(|error| failed(error.to_string()))
        });
        let spawned = spawning
            .await
            .map_err(|error| failed(error.to_string()))??;
        let running = Running::new(spawned, room).map_err(|error| failed(error.to_string()))?;
        let output = Arc::new(Output::new(shell.output_max));
        order.progress.writes_to(output.clone());
        let over = running.finish(&output, limits::COMMAND_OUTPUT_MAX).await;
        let mut heard = Vec::new();
        let report = match over {
            Ok(Over::Ended(mut ended)) => {
                heard = std::mem::take(&mut ended.said);
                report(shell, &ended)
            }
            Ok(Over::TooMuch) => {
                let most = limits::COMMAND_OUTPUT_MAX;
                Report::failed(format!("it wrote more than {most} bytes, and was ended"))
            }
            Err(error) => Report::failed(format!("its supervisor has ended early: {error}")),
        };
        let (kept, truncated) = output.output();
        let report = Report {
            truncated,
            ..report.with_output(kept)
        };
        Ok(match said::result(&heard, shell.output_max) {
            Ok(Some(result)) if report.outcome == Outcome::Succeeded => Report {
                truncated: false,
                ..report.with_output(result)
            },
            Ok(_) => report,
            Err(why) if report.outcome == Outcome::Succeeded => Report {
                output: report.output,
                truncated: report.truncated,
                cost: report.cost,
                status: report.status,
                ..Report::failed(why)
            },
            Err(_) => report,
        })
    }

    pub(super) fn supervisor(&self) -> &Path {
        &self.config.supervisor
    }

    fn order(&self, order: &WorkOrder, shell: &ShellTarget, sandbox: Option<Sandbox>) -> Order {
        let env = order.env.as_ref().unwrap_or(&shell.env);
        let mut all: Vec<(String, String)> = vec![
            ("PATH".to_owned(), PATH.to_owned()),
            ("LANG".to_owned(), LANG.to_owned()),
        ];
        all.extend(env.iter().cloned());
        all.extend(ids(order));
        Order {
            env: all,
            has_payload: order.payload().is_some(),
            ..self.bare_order(shell, sandbox)
        }
    }

    /// Of nobody's attempt, and without an environment.
    pub(super) fn bare_order(&self, shell: &ShellTarget, sandbox: Option<Sandbox>) -> Order {
        let limits = self.config.limits;
        Order {
            file: PathBuf::new(),
            command: shell.command.clone(),
            dir: shell.dir.clone(),
            env: Vec::new(),
            folder: self.config.folder.path().to_owned(),
            has_payload: false,
            sandbox,
            run_as: self.config.run_as,
            limits,
            // Beside the commands, their supervisors and starters, and the node itself.
            user_processes_max: (self.config.running_max as u64)
                .saturating_mul(limits.processes_max + 8)
                .saturating_add(1_024),
        }
    }
}

/// Whose attempt it is.
fn ids(order: &WorkOrder) -> Vec<(String, String)> {
    let job = &order.job;
    let mut ids = vec![
        ("PUNCTUAL_TENANT", job.tenant.to_string()),
        ("PUNCTUAL_JOB", job.id.to_string()),
        ("PUNCTUAL_RUN", order.run.to_string()),
        ("PUNCTUAL_ATTEMPT", order.attempt.to_string()),
        ("PUNCTUAL_NODE", order.node.to_string()),
    ];
    ids.extend(
        job.key
            .as_ref()
            .map(|key| ("PUNCTUAL_JOB_KEY", key.to_string())),
    );
    ids.extend(order.slot.map(|slot| ("PUNCTUAL_SLOT", slot.0.to_string())));
    let ids = ids.into_iter();
    // A node's name may hold anything that a header may; a NUL it cannot.
    ids.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the end of a command means.
fn report(shell: &ShellTarget, ended: &Ended) -> Report {
    let cost = Cost {
        cpu: Duration::from_micros(ended.cpu),
        memory_max: ended.memory_max,
        io: ended.io.map(|(read, written)| Io { read, written }),
    };
    let report = match (ended.exit, ended.signal, &ended.why) {
        (exit, _, Some(why)) => match exit {
            Some(code) => Report::failed(why).with_status(code),
            None => Report::failed(why),
        },
        (Some(code), _, None) => {
            let retry = match shell.exit.meaning(code) {
                ExitMeaning::Success => None,
                ExitMeaning::Retry => Some(RetryHint::Always),
                ExitMeaning::Fail => Some(RetryHint::Usual),
                ExitMeaning::Dead => Some(RetryHint::Never),
            };
            let report = match retry {
                None => Report::succeeded(),
                Some(retry) => {
                    Report::failed(format!("it exited with code {code}")).with_retry(retry)
                }
            };
            report.with_status(code)
        }
        (None, Some(signal), None) => Report::failed(match Signal::try_from(signal) {
            Ok(known) => format!("it was ended by signal {signal} ({known})"),
            Err(_) => format!("it was ended by signal {signal}"),
        }),
        (None, None, None) => Report::failed("it is not known how it ended"),
    };
    // What never was took nothing.
    let was_started = ended.exit.is_some() || ended.signal.is_some();
    report.with_cost(was_started.then_some(cost))
}

#[async_trait]
impl Executor for ShellExecutor {
    async fn execute(&self, order: WorkOrder) -> Report {
        match &order.job.def.target {
            Target::Shell(shell) => match self.run(&order, shell, None).await {
                Ok(report) | Err(report) => report,
            },
            Target::Http(_) | Target::Python(_) => {
                Report::failed("this executor starts commands only")
            }
        }
    }
}
