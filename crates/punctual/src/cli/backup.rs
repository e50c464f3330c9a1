//! `punctual backup FILE`: a whole copy of a data folder's database, taken while a server uses it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::output;
use crate::config::{Config, Flags, Sources};
use crate::failure::{Failure, chain};

pub(super) const HELP: &str = "\
The copy is complete as of one moment and can be served from: put it into an empty folder as
punctual.db.

Examples:
  punctual backup /backups/punctual.db
  punctual backup /backups/punctual.db --data ./data";

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// The file to write; it must not exist
    file: PathBuf,
    /// The folder that holds the data, as for `serve` [env: PUNCTUAL_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// A TOML file with settings, as for `serve` [env: PUNCTUAL_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn execute(backup: &Backup, json: bool) -> Result<(), Failure> {
    let values = backup
        .data
        .iter()
        .map(|data| ("data", data.clone()))
        .collect();
    let flags = Flags {
        config: backup.config.clone(),
        values,
    };
    let config = Config::load(&Sources::of_process(flags))?;
    let bar = output::progress(Some(0), "pages");
    let copied = store::sqlite::backup(&config.data, &backup.file, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let bytes =
        copied.map_err(|error| Failure::usage(format!("no backup was made: {}", chain(&error))))?;
    if json {
        let answer = json!({ "file": backup.file.display().to_string(), "bytes": bytes });
        return output::line(&answer.to_string());
    }
    output::line(&format!("wrote {} ({bytes} bytes)", backup.file.display()))
}
