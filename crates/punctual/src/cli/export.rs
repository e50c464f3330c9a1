//! `punctual export runs`: history as lines of JSON. What goes to a file goes on where it was when the same command is given
//! again: beside the file stands how far it is, and the file has its name only when it is whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use engine::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::find::Find;
use super::output;
use crate::client::{Call, Client, with_query};
use crate::failure::Failure;

/// Runs of one page: each may have an answer of 64 KiB, and a page is what is in memory.
const PAGE: u32 = 200;

const HELP: &str = "\
Runs come newest first, one JSON document per line, as `run list --json` has them. Runs that have not ended are among them, as they
stand: to leave them out, end the range in the past.

With --output the same command again goes on where the one before was stopped. Until it is whole, the file's name ends in .part, and
FILE.cursor says how far it is.

Examples:
  punctual export runs --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --output november.ndjson
  punctual export runs --since 1d --job nightly-report --state dead > dead.ndjson";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the runs of a stretch of time, one JSON document per line
    #[command(after_help = HELP)]
    Runs(Runs),
}

#[derive(Debug, Args)]
pub(super) struct Runs {
    #[command(flatten)]
    find: Find,
    /// Write them to this file; given again, the command goes on with it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Go on here: what a command without --output said when it broke off
    #[arg(long, conflicts_with = "output")]
    cursor: Option<String>,
}

/// How far an export is, as it stands in a file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// The command's flags.
    flags: String,
    /// What that came to when it was first given.
    query: Vec<(String, String)>,
    cursor: Option<String>,
    /// The next page has this place in the file.
    bytes: u64,
    runs: u64,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl Command {
    pub(super) async fn execute(self, client: &Client) -> Result<(), Failure> {
        let Self::Runs(runs) = self;
        let mut begun = Progress {
            flags: format!("{:?}", runs.find),
            cursor: runs.cursor,
            ..Progress::default()
        };
        let mut find = runs.find;
        if find.from()?.is_none() {
            return Err(Failure::usage("say from when on: --from or --since"));
        }
        // What begins after this is for the next export.
        find.to
            .get_or_insert_with(|| Clock::now(&SystemClock).to_string());
        let query = find.query()?.into_iter();
        begun.query = query
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        match runs.output {
            Some(path) => to_file(client, begun, &path).await,
            None => to_stdout(client, begun).await,
        }
    }
}

async fn to_stdout(client: &Client, mut progress: Progress) -> Result<(), Failure> {
    loop {
        let (lines, count) = match page(client, &progress).await {
            Ok(page) => take(&mut progress, page),
            Err(mut failure) => {
                if progress.cursor.is_some() {
                    failure.text = format!("{}; go on with {}", failure.text, rest_of(&progress));
                }
                return Err(failure);
            }
        };
        output::bytes(&lines)?;
        progress.runs += count;
        if progress.cursor.is_none() {
            return Ok(());
        }
    }
}

/// The flags of what is left: the range as it was, which began some time before now.
fn rest_of(progress: &Progress) -> String {
    let range = progress.query.iter();
    let range = range.filter(|(name, _)| name == "from" || name == "to");
    let flags: Vec<String> = range
        .chain(&progress.cursor.clone().map(|it| ("cursor".to_owned(), it)))
        .map(|(name, value)| format!("--{name} {value}"))
        .collect();
    flags.join(" ")
}

async fn to_file(client: &Client, begun: Progress, path: &Path) -> Result<(), Failure> {
    let (part, beside) = (with_end(path, ".part"), with_end(path, ".cursor"));
    if path.exists() {
        let text = format!(
            "{} is there, and whole: remove it or name another",
            path.display()
        );
        return Err(Failure::usage(text));
    }
    let failed =
        |error: io::Error| Failure::usage(format!("{} cannot be written: {error}", part.display()));
    let mut file = open(&part)?;
    let mut progress = match fs::read(&beside) {
        Ok(text) => resumed(&text, begun, &part, &beside)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => begun,
        Err(error) => return Err(failed(error)),
    };
    if file.metadata().map_err(failed)?.len() < progress.bytes {
        return Err(other_export(&part, &beside, "is shorter than it was"));
    }
    // A page that was written without a word of it is written again.
    file.set_len(progress.bytes).map_err(failed)?;
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    let bar = output::progress(None, "runs");
    loop {
        bar.set_position(progress.runs);
        let page = page(client, &progress).await.map_err(|mut failure| {
            failure.text = format!("{}; the same command goes on", failure.text);
            failure
        })?;
        let (lines, count) = take(&mut progress, page);
        file.write_all(&lines).map_err(failed)?;
        progress.bytes += lines.len() as u64;
        progress.runs += count;
        file.sync_data().map_err(failed)?;
        if progress.cursor.is_none() {
            break;
        }
        write_progress(&beside, &progress).map_err(failed)?;
    }
    bar.finish_and_clear();
    fs::rename(&part, path).map_err(failed)?;
    if let Err(error) = fs::remove_file(&beside)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(error));
    }
    output::note(&format!("{} runs in {}", progress.runs, path.display()));
    Ok(())
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// The file, for this process alone.
fn open(part: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    // What targets answered is nobody else's.
    options.create(true).truncate(false).write(true).mode(0o600);
    let refused =
        |why: String| Failure::usage(format!("{} cannot be written: {why}", part.display()));
    let file = options
        .open(part)
        .map_err(|error| refused(error.to_string()))?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => refused("another export is writing it".to_owned()),
        TryLockError::Error(error) => refused(error.to_string()),
    })?;
    Ok(file)
}

fn other_export(part: &Path, beside: &Path, why: &str) -> Failure {
    let (part, beside) = (part.display(), beside.display());
    Failure::usage(format!(
        "{part} {why}: remove it and {beside} to begin again"
    ))
}

/// Where the same export was stopped.
fn resumed(text: &[u8], begun: Progress, part: &Path, beside: &Path) -> Result<Progress, Failure> {
    let Ok(before) = serde_json::from_slice::<Progress>(text) else {
        return Err(other_export(
            part,
            beside,
            "is of an export that cannot be read",
        ));
    };
    if before.flags != begun.flags {
        return Err(other_export(
            part,
            beside,
            "is of an export with other flags",
        ));
    }
    Ok(before)
}

/// Whole or not at all.
fn write_progress(path: &Path, progress: &Progress) -> io::Result<()> {
    let beside = with_end(path, ".new");
    let mut file = File::create(&beside)?;
    file.write_all(&serde_json::to_vec(progress)?)?;
    file.sync_data()?;
    fs::rename(&beside, path)
}

async fn page(client: &Client, progress: &Progress) -> Result<Page, Failure> {
    let query = progress.query.iter();
    let mut query: Vec<(&str, String)> = query
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    query.push(("limit", PAGE.to_string()));
    query.extend(progress.cursor.clone().map(|cursor| ("cursor", cursor)));
    let answer = client
        .send(Call::get(with_query("/v1/runs", &query)))
        .await?;
    let strange =
        |_| Failure::refused("the server's answer has no runs: is this a Punctual server?");
    serde_json::from_slice(&answer).map_err(strange)
}

/// A page as lines, and how many; the page after it is next.
fn take(progress: &mut Progress, page: Page) -> (Vec<u8>, u64) {
    let mut lines = Vec::new();
    for item in &page.items {
        let begin = lines.len();
        lines.extend_from_slice(item.get().as_bytes());
        // A payload is as its author wrote it. Between values a line break is a space; within one there is none.
        for byte in lines.iter_mut().skip(begin) {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        lines.push(b'\n');
    }
    progress.cursor = page.next_cursor;
    (lines, page.items.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_one_line_whatever_its_payload_holds() {
        let text = "{\"items\": [{\"payload\": [1.0,\r\n 2], \"said\": \"a\\nb\"}, {}], \"next_cursor\": \"x\"}";
        let page: Page = serde_json::from_str(text).unwrap();
        let mut progress = Progress::default();
        let (lines, count) = take(&mut progress, page);
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(
            lines,
            "{\"payload\": [1.0,   2], \"said\": \"a\\nb\"}\n{}\n"
        );
        assert_eq!((count, progress.cursor.as_deref()), (2, Some("x")));
    }
}
