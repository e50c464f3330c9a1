//! `punctual bench`: sizes a machine. Each workload runs on a store of its own, in a folder or in a
//! schema of a PostgreSQL database, that is removed afterwards; with `--floor` a program that does the same by hand runs in turn with it, so
//! that results read as ratios.

mod beside;
mod child;
mod commands;
mod console;
mod costs;
mod database;
mod figures;
mod fleet;
mod floor;
mod floor_pg;
mod history;
mod http;
mod ingest;
mod million;
mod outside;
mod pairs;
mod recovery;
mod rig;
mod snapshot;
mod soak;
mod targets;
mod tenants;
mod two_nodes;
mod workloads;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::output;
use crate::failure::Failure;
use figures::Figures;
use history::Size;
use rig::{Base, Place};
use snapshot::Beside;

pub(crate) const HELP: &str = "\
Workloads:
  all         what suits the store, one after another; never console, soak, fleet and snapshot
  drain       100,000 due one-offs, no-op targets: runs a second, from due to history
  repeat      100,000 recurring jobs with a slot that is due, likewise
  hot-second  20,000 one-offs due at one instant: when the last one was dispatched
  precision   500 slots a second at distinct milliseconds for 20 s: how late
  recurring   2,000 jobs due every second for 30 s: missed, twice, how late (1,000 with --store)
  crowd       10,000 jobs due every second for 30 s, likewise
  recovery    200,000 overdue slots, half of them one-offs, beside 1,000 jobs due every second: how late those are, how fast the backlog goes
  beside-clients  500 slots a second beside 64 clients that edit one job and 32 that create: how much later slots are
  two-nodes   drain by two nodes on one database, beside one (with --store)
  http        100,000 callbacks to a receiver on this machine: runs a second, settled
  create      jobs created one by one over REST by 64 clients (32 with --store)
  keys        nine pairs of create, and of http beside clients that read, with a key and without: what keys cost
  audit       nine pairs of create, entered in the audit log and sealed, or not: what that costs
  signing     nine pairs of http, signed and unsigned: what signatures cost
  slow-targets  10,000 targets that take five seconds, called at once: memory
  dead-host   1,000 targets called every second, with and without one that never answers: how much later calls are
  commands    nine pairs of 2,000 commands, as runs and started by hand: what a supervisor and a run cost
  handed-over  100,000 attempts that others work on, each heard once a minute: what database and node spend (with --store)
  ingest      --count jobs created by batch requests, bare ones and real ones: jobs a second, bytes a job
  million     a million registered jobs: start, memory, and the workloads beside them
  console     pages of the console over --jobs jobs and --runs runs: how long they take, how large they are, what 200 open overviews cost
  tenants     10,000 tenants with 100 jobs each, one of them with far more runs: how long their lists take
  soak        4,000 jobs due every second for --minutes: whether tables keep their size (with --store)
  fleet       50 light nodes over a million jobs, 1,000 of them due every second: what they read (with --store)
  snapshot    jobs beside somebody's long transaction: how late, what the server spends (with --store on this machine)

Examples:
  punctual bench drain
  punctual bench all --floor --rounds 3
  punctual bench drain two-nodes --store postgres://punctual@127.0.0.1/punctual";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    All,
    Drain,
    Repeat,
    HotSecond,
    Precision,
    Recurring,
    Crowd,
    Recovery,
    BesideClients,
    TwoNodes,
    Http,
    Create,
    Keys,
    Audit,
    Signing,
    SlowTargets,
    DeadHost,
    Commands,
    HandedOver,
    Ingest,
    Million,
    Tenants,
    Console,
    Soak,
    Snapshot,
    Fleet,
}

impl Workload {
    /// What `all` means on SQLite.
    const EMBEDDED: [Self; 17] = [
        Self::Drain,
        Self::HotSecond,
        Self::Precision,
        Self::Recurring,
        Self::Recovery,
        Self::BesideClients,
        Self::Http,
        Self::Create,
        Self::Ingest,
        Self::Keys,
        Self::Audit,
        Self::Signing,
        Self::SlowTargets,
        Self::DeadHost,
        Self::Commands,
        Self::Tenants,
        Self::Million,
    ];

    /// And on PostgreSQL.
    const SHARED: [Self; 21] = [
        Self::Drain,
        Self::Repeat,
        Self::HotSecond,
        Self::Precision,
        Self::Recurring,
        Self::Crowd,
        Self::Recovery,
        Self::BesideClients,
        Self::TwoNodes,
        Self::Http,
        Self::Create,
        Self::Ingest,
        Self::Keys,
        Self::Audit,
        Self::Signing,
        Self::SlowTargets,
        Self::DeadHost,
        Self::Commands,
        Self::HandedOver,
        Self::Tenants,
        Self::Million,
    ];

    /// These take their time, and turns of their own.
    fn is_long(self) -> bool {
        matches!(
            self,
            Self::Million | Self::Console | Self::Soak | Self::Snapshot | Self::Fleet
        )
    }

    /// These are pairs in turn already, or hardly differ between rounds.
    fn is_paired(self) -> bool {
        matches!(
            self,
            Self::Keys
                | Self::Audit
                | Self::Signing
                | Self::DeadHost
                | Self::Commands
                | Self::HandedOver
                | Self::SlowTargets
                | Self::Tenants
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure
    #[arg(value_enum, default_value = "all")]
    workloads: Vec<Workload>,
    /// Also run the floor programs, in turn with the workloads
    #[arg(long)]
    floor: bool,
    /// How often each workload runs; the middle is shown
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Where the data of the workloads goes; choose the disk that will hold yours
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
    /// Measure on this PostgreSQL database instead, in schemas of the bench's own
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    store: Option<String>,
    /// How many jobs of each kind ingest creates
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    count: u32,
    /// How many jobs the console's pages are measured over
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: u32,
    /// How many runs of these are in history then
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u32).range(1_000..=50_000_000))]
    runs: u32,
    /// How long the soak lasts
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_440))]
    minutes: u32,
    /// How often jobs are due beside an open snapshot
    #[arg(long, value_enum, default_value = "second")]
    every: Beside,
    /// Also write the table, as Markdown, to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bench {
    fn base(&self) -> Base {
        match &self.store {
            Some(address) => Base::Database(address.clone()),
            None => Base::Folder(self.data.clone()),
        }
    }

    fn size(&self) -> Size {
        Size {
            jobs: self.jobs as usize,
            runs: self.runs as usize,
        }
    }

    fn chosen(&self) -> Vec<Workload> {
        match (self.workloads.contains(&Workload::All), &self.store) {
            (true, None) => Workload::EMBEDDED.to_vec(),
            (true, Some(_)) => Workload::SHARED.to_vec(),
            (false, _) => self.workloads.clone(),
        }
    }
}

pub(crate) fn execute(bench: &Bench, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("cannot start: {error}")))?;
    let base = bench.base();
    let mut all = Vec::new();
    for workload in bench.chosen() {
        let mut rounds: Vec<Vec<Figures>> = Vec::new();
        let once = workload.is_paired() || base.is_database() && workload.is_long();
        let times = if once { 1 } else { bench.rounds };
        for round in 1..=times {
            output::note(&format!("{} ({round} of {times})", name(workload)));
            let figures = runtime.block_on(one(workload, &base, bench))?;
            for figures in &figures {
                output::note(&format!("  {}", figures.row().join(" | ")));
            }
            rounds.push(figures);
        }
        let parts = rounds.first().map_or(0, Vec::len);
        for part in 0..parts {
            let of_part: Vec<Figures> = rounds
                .iter()
                .filter_map(|round| round.get(part).cloned())
                .collect();
            all.extend(Figures::middle(&of_part));
        }
    }
    if let Some(path) = &bench.markdown {
        std::fs::write(path, markdown(&all))
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    }
    if json {
        let figures: Vec<_> = all.iter().map(Figures::json).collect();
        return output::line(&json!({ "figures": figures }).to_string());
    }
    output::line(&markdown(&all))
}

fn name(workload: Workload) -> String {
    workload
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

async fn one(workload: Workload, base: &Base, bench: &Bench) -> Result<Vec<Figures>, Failure> {
    let floor = bench.floor;
    let shared = base.is_database();
    Ok(match workload {
        Workload::All => Vec::new(),
        Workload::Drain => vec![workloads::drain_round(base, floor).await?],
        Workload::Repeat => vec![workloads::repeat_round(base, floor).await?],
        Workload::HotSecond => vec![timed(base, async |it| workloads::hot_second(it).await).await?],
        Workload::Precision => {
            let bound = if shared { 6.0 } else { 4.0 };
            vec![timed(base, async |it| workloads::precision(it, bound).await).await?]
        }
        Workload::Recurring => {
            let (jobs, bound) = if shared { (1_000, 25.0) } else { (2_000, 15.0) };
            let bound = Some(bound);
            vec![timed(base, async |it| workloads::recurring(it, jobs, bound).await).await?]
        }
        Workload::Crowd => {
            let crowd = async |it: &Place| workloads::recurring(it, 10_000, None).await;
            let mut figures = timed(base, crowd).await?;
            figures.workload = "crowd";
            vec![figures]
        }
        Workload::Recovery => vec![recovery::recovery(base).await?],
        Workload::BesideClients => vec![beside::beside_clients(base).await?],
        Workload::TwoNodes => vec![two_nodes::two_nodes(base).await?],
        Workload::Http => vec![http::callbacks(base, floor).await?],
        Workload::Create => vec![http::create(base, floor).await?],
        Workload::Keys => costs::keys(base).await?,
        Workload::Audit => vec![costs::audit(base).await?],
        Workload::SlowTargets => vec![outside::slow_targets(base).await?],
        Workload::DeadHost => {
            vec![workloads::in_quiet(async || outside::dead_host(base).await).await?]
        }
        Workload::Commands => vec![commands::commands(base).await?],
        Workload::HandedOver => vec![outside::handed_over(base).await?],
        Workload::Signing => vec![costs::signing(base).await?],
        Workload::Ingest => {
            loading(async |progress| {
                ingest::ingest(base, floor, bench.count as usize, progress).await
            })
            .await?
        }
        Workload::Million => {
            loading(async |progress| million::million(base, floor, progress).await).await?
        }
        Workload::Tenants => {
            vec![loading(async |progress| tenants::tenants(base, progress).await).await?]
        }
        Workload::Console => {
            loading(async |progress| console::console(base, bench.size(), progress).await).await?
        }
        Workload::Fleet => {
            vec![loading(async |progress| fleet::fleet(base, progress).await).await?]
        }
        Workload::Soak => vec![soak::soak(base, bench.minutes).await?],
        Workload::Snapshot => vec![snapshot::snapshot(base, bench.every).await?],
    })
}

/// A workload that shows how far loading its jobs is.
async fn loading<T>(
    measure: impl AsyncFn(&dyn Fn(u64, u64)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bar = output::progress(None, "jobs");
    let show = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let measured = measure(&show).await;
    bar.finish_and_clear();
    measured
}

/// A workload about moments, on a store of its own, while the machine is quiet.
async fn timed(
    base: &Base,
    measure: impl AsyncFn(&Place) -> Result<Figures, Failure>,
) -> Result<Figures, Failure> {
    workloads::in_quiet(async || {
        let place = Place::new(base)?;
        let figures = measure(&place).await?;
        place.end().await?;
        Ok(figures)
    })
    .await
}

fn markdown(all: &[Figures]) -> String {
    let mut text = "| workload | measured | floor | bars |\n| --- | --- | --- | --- |\n".to_owned();
    for figures in all {
        let [workload, measured, floor, bars] = figures.row();
        text.push_str(&format!("| {workload} | {measured} | {floor} | {bars} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that a help text has at the beginnings of its lines.
    fn named() -> Vec<&'static str> {
        let workloads = HELP.split("\n\n").next().unwrap();
        let lines = workloads.lines().skip(1);
        lines
            .map(|line| line.split_whitespace().next().unwrap())
            .collect()
    }

    #[test]
    fn the_help_names_every_workload_once_and_no_other() {
        let mut named = named();
        let mut all: Vec<String> = Workload::value_variants()
            .iter()
            .copied()
            .map(name)
            .collect();
        named.sort_unstable();
        all.sort_unstable();
        assert_eq!(named, all);
    }

    #[test]
    fn the_help_says_of_which_workloads_a_database_is_wanted() {
        let shared = [
            Workload::TwoNodes,
            Workload::HandedOver,
            Workload::Soak,
            Workload::Fleet,
            Workload::Snapshot,
        ];
        for workload in Workload::value_variants() {
            let begins = format!("  {} ", name(*workload));
            let line = HELP.lines().find(|line| line.starts_with(&begins)).unwrap();
            let wants = line.ends_with("(with --store)")
                || line.ends_with("(with --store on this machine)");
            assert_eq!(wants, shared.contains(workload), "{line}");
            assert!(!wants || !Workload::EMBEDDED.contains(workload), "{line}");
        }
    }
}
