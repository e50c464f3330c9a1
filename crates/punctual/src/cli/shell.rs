//! What a command line says about a command.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::fields::{pairs, put};
use super::when::number;
use crate::failure::Failure;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ShellFields {
    /// Start this program on the node's machine, by its absolute path; each argument is an --arg
    #[arg(long, value_name = "PROGRAM", help_heading = "What is sent")]
    command: Option<String>,
    /// Run this file in a sandbox on the node's machine; each argument is an --arg
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "What is sent",
        conflicts_with_all = ["command", "dir"]
    )]
    script: Option<PathBuf>,
    /// What runs the script, by its absolute path [default of the server: /usr/bin/python3]
    #[arg(
        long,
        value_name = "PROGRAM",
        help_heading = "What is sent",
        requires = "script"
    )]
    interpreter: Option<String>,
    /// An argument of the command or the script, as it is; may be given several times
    #[arg(
        long = "arg",
        value_name = "ARGUMENT",
        help_heading = "What is sent",
        allow_hyphen_values = true
    )]
    arguments: Vec<String>,
    /// The folder that the command starts in; empty for one of its own
    #[arg(long, value_name = "FOLDER", help_heading = "What is sent")]
    dir: Option<String>,
    /// A variable of the command's environment; may be given several times, without a value takes it away
    #[arg(long, value_name = "NAME=VALUE", help_heading = "What is sent")]
    env: Vec<String>,
    /// Exit codes that are success, such as 0,3; empty for 0
    #[arg(long, value_name = "CODES", help_heading = "What is sent")]
    success_exit: Option<String>,
    /// Exit codes after which it is tried again also beyond --attempts-max, such as 75; empty for none
    #[arg(long, value_name = "CODES", help_heading = "What is sent")]
    retry_exit: Option<String>,
    /// Exit codes that are failures, as are all that are not named; empty for none
    #[arg(long, value_name = "CODES", help_heading = "What is sent")]
    fail_exit: Option<String>,
    /// Exit codes after which it is not tried again, such as 2,64; empty for none
    #[arg(long, value_name = "CODES", help_heading = "What is sent")]
    dead_exit: Option<String>,
}

impl ShellFields {
    pub(super) fn has_command(&self) -> bool {
        self.command.is_some() || self.script.is_some()
    }

    /// The kind of the target, and what is said of it.
    pub(super) fn to_json(&self) -> Result<Option<(&'static str, Value)>, Failure> {
        let mut shell = Map::new();
        let kind = if let Some(file) = &self.script {
            let source = std::fs::read_to_string(file).map_err(|error| {
                Failure::usage(format!(
                    "the script {} cannot be read: {error}",
                    file.display()
                ))
            })?;
            shell.insert("source".to_owned(), source.into());
            put(&mut shell, "interpreter", self.interpreter.as_deref());
            if !self.arguments.is_empty() {
                shell.insert("args".to_owned(), self.arguments.clone().into());
            }
            "python"
        } else {
            if let Some(program) = &self.command {
                let parts = std::iter::once(program).chain(&self.arguments);
                shell.insert("command".to_owned(), parts.cloned().collect());
            } else if !self.arguments.is_empty() {
                return Err(Failure::usage(
                    "--arg needs --command or --script beside it",
                ));
            }
            "shell"
        };
        put(&mut shell, "dir", self.dir.as_deref());
        if !self.env.is_empty() {
            let env = pairs(&self.env, '=', "a variable is NAME=VALUE")?;
            shell.insert("env".to_owned(), env.into());
        }
        for (name, codes) in [
            ("success", &self.success_exit),
            ("retry", &self.retry_exit),
            ("fail", &self.fail_exit),
            ("dead", &self.dead_exit),
        ] {
            if let Some(codes) = codes {
                shell.insert(name.to_owned(), exit_codes(codes));
            }
        }
        Ok((!shell.is_empty()).then(|| (kind, shell.into())))
    }
}

fn exit_codes(text: &str) -> Value {
    let codes = text.split(',').map(str::trim);
    let codes: Vec<Value> = codes.filter(|it| !it.is_empty()).map(number).collect();
    if codes.is_empty() {
        Value::Null
    } else {
        codes.into()
    }
}

/// A command, where something is said that a request has as well: how much is kept.
pub(super) fn both(http: Value, (kind, mut program): (&str, Value)) -> Result<Value, Failure> {
    let others = http.as_object().into_iter().flatten();
    for (name, value) in others {
        if name != "output_max" {
            let why = "a job calls an address or starts a command: leave out --command and --script, or what belongs to --url";
            return Err(Failure::usage(why));
        }
        program[name.as_str()] = value.clone();
    }
    Ok(json!({ kind: program }))
}
