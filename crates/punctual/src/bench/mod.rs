//! `punctual bench`: sizes a machine. Each workload runs on a store of its own in a folder that is
//! removed afterwards; with `--floor` a program that does the same by hand runs in turn with it, so
//! that results read as ratios.

mod figures;
mod floor;
mod http;
mod million;
mod rig;
mod workloads;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::output;
use crate::failure::Failure;
use figures::Figures;

pub const HELP: &str = "\
Workloads:
  drain       100,000 due one-offs, no-op targets: runs a second, from due to history
  hot-second  20,000 one-offs due at one instant: when the last one was dispatched
  precision   500 slots a second at distinct milliseconds for 20 s: how late
  recurring   2,000 jobs due every second for 30 s: missed, twice, how late
  http        100,000 callbacks to a receiver on this machine: runs a second, settled
  create      jobs created one by one over REST by 64 clients
  ingest      200,000 jobs created in one batch request
  million     a million registered jobs: start, memory, and the workloads beside them

Examples:
  punctual bench drain
  punctual bench all --floor --rounds 3";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    All,
    Drain,
    HotSecond,
    Precision,
    Recurring,
    Http,
    Create,
    Ingest,
    Million,
}

impl Workload {
    const EACH: [Self; 8] = [
        Self::Drain,
        Self::HotSecond,
        Self::Precision,
        Self::Recurring,
        Self::Http,
        Self::Create,
        Self::Ingest,
        Self::Million,
    ];
}

#[derive(Debug, Args)]
pub struct Bench {
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
    /// Also write the table, as Markdown, to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn execute(bench: &Bench, json: bool) -> Result<(), Failure> {
    let chosen: Vec<Workload> = if bench.workloads.contains(&Workload::All) {
        Workload::EACH.to_vec()
    } else {
        bench.workloads.clone()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("cannot start: {error}")))?;
    let mut all = Vec::new();
    for workload in chosen {
        let mut rounds: Vec<Vec<Figures>> = Vec::new();
        for round in 1..=bench.rounds {
            output::note(&format!("{} ({round} of {})", name(workload), bench.rounds));
            rounds.push(runtime.block_on(one(workload, &bench.data, bench.floor))?);
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

async fn one(workload: Workload, base: &Path, floor: bool) -> Result<Vec<Figures>, Failure> {
    let folder = rig::Folder::new(base)?;
    match workload {
        Workload::All => Ok(Vec::new()),
        Workload::Drain => Ok(vec![workloads::drain_round(base, floor).await?]),
        Workload::HotSecond => Ok(vec![workloads::hot_second(folder.path()).await?]),
        Workload::Precision => Ok(vec![workloads::precision(folder.path()).await?]),
        Workload::Recurring => Ok(vec![workloads::recurring(folder.path()).await?]),
        Workload::Http => Ok(vec![http::callbacks(base, floor).await?]),
        Workload::Create => Ok(vec![http::create(base, floor).await?]),
        Workload::Ingest => Ok(vec![http::ingest(base, floor).await?]),
        Workload::Million => {
            let bar = output::progress(None, "jobs");
            let tell = |done, total| {
                bar.set_length(total);
                bar.set_position(done);
            };
            let figures = million::million(base, floor, &tell).await;
            bar.finish_and_clear();
            figures
        }
    }
}

fn markdown(all: &[Figures]) -> String {
    let mut text = "| workload | measured | floor | bars |\n| --- | --- | --- | --- |\n".to_owned();
    for figures in all {
        let [workload, measured, floor, bars] = figures.row();
        text.push_str(&format!("| {workload} | {measured} | {floor} | {bars} |\n"));
    }
    text
}
