//! A command as clients write it: `{"shell": {"command": ["/usr/bin/pg_dump", "shop"]}}`.

use model::shell::{check_command, check_dir, check_env};
use model::{ExitCodes, limits};

use super::read::{Fields, Path, Read, Shape, Value, shown};
use super::target_in::below_target;
use crate::ops::{ExitDraft, FieldError, Patch, ShellDraft};

pub const SHELL_FIELDS: [&str; 8] = [
    "command",
    "dir",
    "env",
    "success",
    "retry",
    "fail",
    "dead",
    "output_max",
];
const SHELL: Path<'static> = Path {
    parent: "target",
    name: "shell",
};

const ENV: Path<'static> = Path {
    parent: "target.shell",
    name: "env",
};

pub(super) fn shell(value: Value<'_>) -> Read<ShellDraft> {
    let fields = Fields::of(value, SHELL, "target.shell", &SHELL_FIELDS)?;
    let command = fields.patch("command", command)?;
    if command == Patch::Reset {
        let detail = "a target cannot be without command: leave it out to keep it, or give another";
        return Err(FieldError::invalid("target.shell.command", detail));
    }
    let most = limits::OUTPUT_MAX as i64;
    Ok(ShellDraft {
        command: command.into_given(),
        dir: fields.patch("dir", |value, path| {
            check_dir(&value.text(path)?).map_err(below_target)
        })?,
        env: fields.patch("env", |value, _| env(value, "target.shell.env", ENV))?,
        exit: exit(&fields)?,
        output_max: fields.patch("output_max", |value, path| {
            Ok(value.integer(path, 0, most)? as usize)
        })?,
    })
}

fn command(value: Value<'_>, path: Path<'_>) -> Read<Vec<String>> {
    let what = "a list such as [\"/usr/bin/pg_dump\", \"shop\"]: no shell reads it";
    let parts = value.list(path, what, limits::COMMAND_PARTS_MAX, |value, path| {
        value.text(path)
    })?;
    let parts = parts.into_iter().map(String::from).collect();
    check_command(parts).map_err(below_target)
}

/// What exit codes mean, among the fields of a target.
pub(super) fn exit(fields: &Fields<'_>) -> Read<ExitDraft> {
    Ok(ExitDraft {
        success: fields.patch("success", exit_codes)?,
        retry: fields.patch("retry", exit_codes)?,
        fail: fields.patch("fail", exit_codes)?,
        dead: fields.patch("dead", exit_codes)?,
    })
}

fn exit_codes(value: Value<'_>, path: Path<'_>) -> Read<ExitCodes> {
    let what = "a list of exit codes such as [0, 3]";
    let codes = value.list(path, what, limits::EXIT_CODES_MAX, |value, path| {
        value.integer(path, 0, 255)
    })?;
    Ok(ExitCodes::new(codes.into_iter().map(|code| code as u8)))
}

/// By their names; null takes one away. `parent` is where they are, and `path` the same in its parts.
pub(super) fn env(
    value: Value<'_>,
    parent: &'static str,
    path: Path<'static>,
) -> Read<Vec<(String, Option<String>)>> {
    let fields = Fields::any(value.0, parent, path)?;
    let mut env = Vec::new();
    for (name, value) in fields.iter() {
        let shown = shown(name);
        let path = Path {
            parent,
            name: &shown,
        };
        let null = value.shape() == Shape::Null;
        let text = if null { "".into() } else { value.text(path)? };
        check_env(name, &text).map_err(|error| path.invalid(error.detail))?;
        env.push((name.to_owned(), Some(text.into_owned()).filter(|_| !null)));
    }
    Ok(env)
}
