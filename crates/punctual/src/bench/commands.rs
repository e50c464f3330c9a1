//! Commands as runs, beside the same commands started by hand: a loop that forks, executes, reads two pipes and waits.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use executor::Registry;
use executor::shell::{Commands, Folder, ProcessLimits, ShellConfig, ShellExecutor, THIS_PROGRAM};
use model::{ShellTarget, Target};

use super::figures::Figures;
use super::pairs::Pairs;
use super::rig::{self, Base, Place};
use crate::failure::Failure;

const COUNT: usize = 2_000;
const AT_ONCE: usize = 64;
const PROGRAM: &str = "/bin/true";

pub(super) async fn commands(base: &Base) -> Result<Figures, Failure> {
    let pairs = Pairs {
        workload: "commands",
        unit: "commands",
        with: "as runs",
        without: "by hand",
        least: 0.5,
    };
    pairs
        .measure(
            async |as_runs| {
                if as_runs { runs(base).await } else { by_hand() }
            },
        )
        .await
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

/// From the start of the node to the last run in history.
async fn runs(base: &Base) -> Result<f64, Failure> {
    let place = Place::new(base)?;
    let store = place.open().await?;
    let target = Target::Shell(ShellTarget::new([PROGRAM]).map_err(wrong)?);
    rig::load(&*store, &rig::overdue(COUNT, &target)).await?;
    let shell = ShellExecutor::new(ShellConfig {
        commands: Arc::new(PROGRAM.parse::<Commands>().map_err(wrong)?),
        run_as: None,
        limits: ProcessLimits {
            memory_max: 4 << 30,
            processes_max: 256,
            file_max: 1 << 30,
        },
        running_max: AT_ONCE,
        folder: Folder::open().map_err(wrong)?,
        supervisor: THIS_PROGRAM.into(),
    });
    let shell = Arc::new(shell.map_err(wrong)?);
    let registry = Registry::default().with("shell", shell);
    let begun = rig::uptime();
    let node = rig::start(&place, &store, registry).await?;
    let metrics = node.handle().metrics().clone();
    rig::wait("the commands", async || {
        metrics.dispatched.get() >= COUNT as u64 && rig::is_settled(&*store).await
    })
    .await?;
    let took = rig::uptime().saturating_sub(begun);
    node.stop(std::time::Duration::from_secs(5)).await;
    drop(store);
    place.end().await?;
    Ok(COUNT as f64 / took.as_secs_f64())
}

fn by_hand() -> Result<f64, Failure> {
    let left = AtomicUsize::new(COUNT);
    let start_next = || {
        let next = |left: usize| left.checked_sub(1);
        while left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .is_ok()
        {
            let mut command = Command::new(PROGRAM);
            command.stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.output()?;
        }
        Ok(())
    };
    let begun = rig::uptime();
    thread::scope(|scope| {
        let loops: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(start_next)).collect();
        let broken = |_| Err(std::io::ErrorKind::Other.into());
        let mut ended = loops.into_iter().map(|it| it.join().unwrap_or_else(broken));
        ended.try_for_each(|it: std::io::Result<()>| it)
    })
    .map_err(wrong)?;
    Ok(COUNT as f64 / rig::uptime().saturating_sub(begun).as_secs_f64())
}
