//! `punctual config print`.

use clap::Subcommand;
use comfy_table::Cell;
use serde_json::{Map, json};

use super::output;
use crate::config::{Config, Flags, SETTINGS, Sources};
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print every setting's value and where it came from; takes the flags of `serve`
    Print(Flags),
}

pub(super) fn execute(command: Command, json: bool) -> Result<(), Failure> {
    let Command::Print(flags) = command;
    let sources = Sources::of_process(flags);
    let config = Config::load(&sources)?;
    if json {
        let mut settings = Map::new();
        for setting in SETTINGS {
            let (value, from) = config.shown(setting);
            settings.insert(
                setting.name.to_owned(),
                json!({ "value": value, "from": from }),
            );
        }
        output::line(&serde_json::Value::from(settings).to_string())?;
    } else {
        let row = |setting| {
            let (value, from) = config.shown(setting);
            vec![
                Cell::new(setting.name),
                Cell::new(output::clean(&value)),
                Cell::new(output::clean(&from)),
            ]
        };
        output::table(
            &["SETTING", "VALUE", "FROM"],
            SETTINGS.iter().map(row).collect(),
        )?;
    }
    for warning in sources
        .unknown_variables()
        .into_iter()
        .chain(config.contradictions())
    {
        output::warning(&warning);
    }
    Ok(())
}
