//! Where settings are given: a file, the environment, the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use toml::de::{DeTable, DeValue};

use super::{Origin, SETTINGS, Setting};
use crate::failure::Failure;

/// The variable that names the file; `--config` wins over it.
const CONFIG_VARIABLE: &str = "PUNCTUAL_CONFIG";
/// Variables that are ours without being settings.
const OTHER_VARIABLES: [&str; 7] = [
    CONFIG_VARIABLE,
    "PUNCTUAL_SERVER",
    "PUNCTUAL_SERVER_CA",
    "PUNCTUAL_CLIENT_CERT",
    "PUNCTUAL_CLIENT_KEY",
    "PUNCTUAL_PROFILE",
    "PUNCTUAL_KEY",
];

/// One value that someone gave.
pub(super) struct Given {
    pub(super) setting: &'static Setting,
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// What was said on the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub config: Option<PathBuf>,
    pub values: BTreeMap<&'static str, String>,
}

/// Everything that settings are read from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    pub environment: BTreeMap<String, OsString>,
    pub flags: Flags,
}

impl Sources {
    /// The process's own environment, and these flags.
    pub(crate) fn of_process(flags: Flags) -> Self {
        let ours = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        let environment = std::env::vars_os().filter_map(ours).collect();
        Self { environment, flags }
    }

    /// All values that were given, the weakest first.
    pub(super) fn given(&self) -> Result<Vec<Given>, Failure> {
        let mut given = Vec::new();
        let variable = self
            .environment
            .get(CONFIG_VARIABLE)
            .filter(|value| !value.is_empty());
        if let Some(path) = self.flags.config.clone().or(variable.map(PathBuf::from)) {
            given.extend(from_file(&path)?);
        }
        for setting in SETTINGS {
            let name = setting.variable();
            // An empty variable is how many tools say "not set".
            if let Some(value) = self
                .environment
                .get(&name)
                .filter(|value| !value.is_empty())
            {
                let text = value
                    .to_str()
                    .ok_or_else(|| Failure::usage(format!("{name} is not UTF-8")))?;
                let origin = Origin::Environment { name };
                given.push(Given {
                    setting,
                    text: text.to_owned(),
                    origin,
                });
            }
        }
        for setting in SETTINGS {
            if let Some(text) = self.flags.values.get(setting.name) {
                let origin = Origin::Flag { name: setting.flag };
                given.push(Given {
                    setting,
                    text: text.clone(),
                    origin,
                });
            }
        }
        Ok(given)
    }

    /// Variables that look like ours and mean nothing: most likely a slip of the keyboard.
    pub(crate) fn unknown_variables(&self) -> Vec<String> {
        let known = |name: &str| {
            OTHER_VARIABLES.contains(&name)
                || name.starts_with("PUNCTUAL_TEST_")
                || SETTINGS.iter().any(|setting| setting.variable() == name)
        };
        let names = self
            .environment
            .keys()
            .filter(|name| name.starts_with("PUNCTUAL_"));
        names
            .filter(|name| !known(name))
            .map(|name| format!("{name} is set and is no setting"))
            .collect()
    }
}

fn from_file(path: &Path) -> Result<Vec<Given>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!(
            "the configuration {} cannot be read: {error}",
            path.display()
        ))
    })?;
    let line_of = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let refused =
        |line: usize, why: &str| Failure::usage(format!("{}, line {line}: {why}", path.display()));
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        refused(line, &error.message().replace('\n', ", "))
    })?;
    let mut given = Vec::new();
    for (key, value) in table.get_ref().iter() {
        let line = line_of(key.span().start);
        let name = key.get_ref().as_ref();
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            let why = format!("unknown key {name:?}: the keys are {}", names.join(", "));
            return Err(refused(line, &why));
        };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(on) => on.to_string(),
            DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                let why = format!("{name} is a text, a whole number, true or false");
                return Err(refused(line, &why));
            }
        };
        given.push(Given {
            setting,
            text,
            origin: Origin::File {
                path: path.to_owned(),
                line,
            },
        });
    }
    Ok(given)
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!(
                "A TOML file with any of these settings [env: {CONFIG_VARIABLE}]"
            ));
        SETTINGS
            .iter()
            .fold(command.arg(config), |command, setting| {
                let default = match setting.default_value() {
                    value if value.is_empty() || setting.value.is_empty() => String::new(),
                    value => format!(" [default: {value}]"),
                };
                let help = format!("{} [env: {}]{default}", setting.help, setting.variable());
                let arg = Arg::new(setting.name).long(setting.flag).help(help);
                command.arg(if setting.value.is_empty() {
                    // `--switch` alone means true; `--switch=false` takes back what a file says.
                    arg.num_args(0..=1)
                        .require_equals(true)
                        .default_missing_value("true")
                        .value_name("BOOL")
                } else {
                    arg.value_name(setting.value).action(ArgAction::Set)
                })
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one::<PathBuf>("config").cloned();
        for setting in SETTINGS {
            if let Some(text) = matches.get_one::<String>(setting.name) {
                self.values.insert(setting.name, text.clone());
            }
        }
        Ok(())
    }
}
