//! One million registered jobs: how soon a server is ready, what memory it takes, and whether the
//! other workloads still hold beside them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::{Clock, SystemClock};

use super::figures::{Bar, Figures};
use super::floor;
use super::rig::{self, Folder};
use super::workloads;
use crate::failure::Failure;

const JOBS: usize = 1_000_000;

/// Fills a folder with jobs that are due over the coming year.
async fn fill(folder: &Path, tell: &dyn Fn(u64, u64)) -> Result<(), Failure> {
    let store = rig::open(folder)?;
    let from = rig::now().plus(Duration::from_secs(3_600));
    let target = rig::callback("http://127.0.0.1:9/hook")?;
    for part in 0..JOBS / 10_000 {
        let jobs: Vec<_> = (0..10_000)
            .map(|n| {
                let ahead = Duration::from_secs((part * 10_000 + n) as u64 * 31);
                rig::one_off(from.plus(ahead), target.clone())
            })
            .collect();
        rig::load(&store, &jobs).await?;
        tell(((part + 1) * 10_000) as u64, JOBS as u64);
    }
    Ok(())
}

/// A server as a user starts it, ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Starts a server on the folder; answers how long until it said that it is ready, and its memory
/// in megabytes a few seconds later.
async fn serve(folder: &Path) -> Result<(f64, f64), Failure> {
    let told = |error: std::io::Error| Failure::refused(format!("cannot start a server: {error}"));
    let program = std::env::current_exe().map_err(told)?;
    let begun = rig::uptime();
    let mut child = Command::new(program)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder)
        .env_remove("PUNCTUAL_LOG")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(told)?;
    let pipe = child.stderr.take();
    let server = Server(child);
    let mut ready = false;
    for line in pipe
        .map(BufReader::new)
        .into_iter()
        .flat_map(BufRead::lines)
    {
        if line.map_err(told)?.contains("ready") {
            ready = true;
            break;
        }
    }
    if !ready {
        return Err(Failure::refused("the server ended before it was ready"));
    }
    let took = rig::uptime().saturating_sub(begun).as_secs_f64();
    SystemClock.sleep(Duration::from_secs(5)).await;
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.0.id())).map_err(told)?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .ok_or_else(|| Failure::refused("cannot read the server's memory"))?;
    Ok((took, resident / 1_000.0))
}

pub async fn million(
    base: &Path,
    with_floor: bool,
    tell: &dyn Fn(u64, u64),
) -> Result<Vec<Figures>, Failure> {
    let folder = Folder::new(base)?;
    fill(folder.path(), tell).await?;
    let (ready, resident) = serve(folder.path()).await?;
    let registered = Figures::new("million")
        .with("ready", ready, " s")
        .with("memory", resident, " MB")
        .bar(Bar::at_most("ready s", ready, 2.0))
        .bar(Bar::at_most("memory MB", resident, 250.0));
    let rate = workloads::drain(folder.path(), 100_000).await?;
    let mut drain = Figures::new("drain beside a million").with("runs", rate, "/s");
    if with_floor {
        drain = drain.against(floor::drain(folder.path(), 100_000).await?, 0.6);
    }
    let mut hot = workloads::hot_second(folder.path()).await?;
    hot.workload = "hot-second beside a million";
    let mut precision = workloads::precision(folder.path()).await?;
    precision.workload = "precision beside a million";
    let mut recurring = workloads::recurring(folder.path()).await?;
    recurring.workload = "recurring beside a million";
    Ok(vec![registered, drain, hot, precision, recurring])
}
