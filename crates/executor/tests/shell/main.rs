//! Commands, with real processes under a real supervisor.
#![cfg(feature = "shell")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, that is how one fails"
)]

mod conformance;
mod escapes;
mod python;
mod python_escapes;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use executor::shell::{Commands, Folder, ProcessLimits, RunAs, ShellConfig, ShellExecutor};
use executor::{Progress, Stopwatch, WorkOrder};
use model::{
    AttemptNo, Definition, Job, JobId, Report, RunId, Schedule, ShellTarget, Slot, Target,
    TenantId, Timestamp,
};
use nix::unistd::{Uid, User};

const SLOT: Slot = Slot(Timestamp::from_millis(1_798_138_800_000));

struct NoClock;

impl Stopwatch for NoClock {
    fn uptime(&self) -> Duration {
        Duration::ZERO
    }
}

fn config() -> ShellConfig {
    ShellConfig {
        commands: Arc::new("/bin/,/usr/bin/".parse::<Commands>().unwrap()),
        run_as: None,
        limits: ProcessLimits {
            memory_max: 4 << 30,
            processes_max: 256,
            file_max: 1 << 30,
        },
        running_max: 256,
        folder: Folder::open().unwrap(),
        supervisor: env!("CARGO_BIN_EXE_supervisor").into(),
    }
}

fn executor() -> ShellExecutor {
    ShellExecutor::new(config()).unwrap()
}

/// Somebody who may do little, if we may become others.
fn nobody() -> Option<RunAs> {
    let user = Uid::effective()
        .is_root()
        .then(|| User::from_name("nobody"));
    let user = user.and_then(|found| found.unwrap())?;
    Some(RunAs {
        user: user.uid.as_raw(),
        group: user.gid.as_raw(),
    })
}

/// What a shell is to do.
fn script(text: &str) -> ShellTarget {
    ShellTarget::new(["/bin/sh", "-c", text]).unwrap()
}

fn order(target: ShellTarget, payload: Option<&str>) -> WorkOrder {
    order_of(Target::Shell(target), payload)
}

fn order_of(target: Target, payload: Option<&str>) -> WorkOrder {
    // Each has a name of its own, also beside those of other tests.
    static LAST: AtomicU32 = AtomicU32::new(0);
    let mut name = [0; 10];
    name[..4].copy_from_slice(&LAST.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    name[4..8].copy_from_slice(&std::process::id().to_be_bytes());
    let id = JobId::new(SLOT.0, name);
    let mut def = Definition::new(Schedule::from(SLOT), target);
    def.payload = payload.map(|text| text.to_owned().into());
    let job = Job::new(id, TenantId::DEFAULT, None, def, SLOT.0);
    WorkOrder {
        run: RunId::for_slot(id, SLOT),
        attempt: AttemptNo(3),
        slot: Some(SLOT),
        job: Arc::new(job),
        payload: None,
        path: None,
        headers: None,
        env: None,
        trace: None,
        sent_at: SLOT.0,
        signer: None,
        identity: None,
        proxy: None,
        callback: None,
        node: "node-1".into(),
        progress: Progress::new(Arc::new(NoClock)),
    }
}

fn text(report: &Report) -> String {
    String::from_utf8_lossy(&report.output).into_owned()
}

/// The processes that have this text in their environment or among their arguments. A zombie has neither.
fn processes_with(text: &str) -> Vec<i32> {
    let holds = |path: &Path| {
        let holds = |name: &str| {
            let found = fs::read(path.join(name)).unwrap_or_default();
            found.windows(text.len()).any(|at| at == text.as_bytes())
        };
        holds("environ") || holds("cmdline")
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        holds(&entry.path()).then_some(pid)
    });
    pids.collect()
}

/// Waits until no such process is there, and fails if that takes too long.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn all_gone(text: &str) {
    for _ in 0..500 {
        if processes_with(text).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("processes with {text} are left: {:?}", processes_with(text));
}

/// Says why a test does nothing here.
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
