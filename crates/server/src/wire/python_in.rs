//! A script as clients write it: `{"python": {"source": "print(1)"}}`.

use model::limits;
use model::python::check_source;
use model::shell::check_command;

use super::read::{Fields, Path, Read, Value};
use super::shell_in::{env, exit};
use super::target_in::below_target;
use crate::ops::{FieldError, Patch, PythonDraft};

pub const PYTHON_FIELDS: [&str; 9] = [
    "source",
    "interpreter",
    "args",
    "env",
    "success",
    "retry",
    "fail",
    "dead",
    "output_max",
];
const PYTHON: Path<'static> = Path {
    parent: "target",
    name: "python",
};

const ENV: Path<'static> = Path {
    parent: "target.python",
    name: "env",
};

pub(super) fn python(value: Value<'_>) -> Read<PythonDraft> {
    let fields = Fields::of(value, PYTHON, "target.python", &PYTHON_FIELDS)?;
    let source = fields.patch("source", |value, path| {
        check_source(&value.text(path)?).map_err(below_target)
    })?;
    if source == Patch::Reset {
        let detail = "a script cannot be without source: leave it out to keep it, or give another";
        return Err(FieldError::invalid("target.python.source", detail));
    }
    let most = limits::OUTPUT_MAX as i64;
    Ok(PythonDraft {
        source: source.into_given(),
        interpreter: fields.patch("interpreter", interpreter)?,
        args: fields.patch("args", args)?,
        env: fields.patch("env", |value, _| env(value, "target.python.env", ENV))?,
        exit: exit(&fields)?,
        output_max: fields.patch("output_max", |value, path| {
            Ok(value.integer(path, 0, most)? as usize)
        })?,
    })
}

fn interpreter(value: Value<'_>, path: Path<'_>) -> Read<String> {
    let program = value.text(path)?.into_owned();
    match check_command(vec![program.clone()]) {
        Ok(_) => Ok(program),
        Err(error) => Err(path.invalid(error.detail)),
    }
}

/// What stands behind the script; how much that may be is known with its interpreter.
fn args(value: Value<'_>, path: Path<'_>) -> Read<Vec<String>> {
    let what = "a list such as [\"--days\", \"7\"]";
    let most = limits::COMMAND_PARTS_MAX - 1;
    let parts = value.list(path, what, most, |value, path| value.text(path))?;
    Ok(parts.into_iter().map(String::from).collect())
}
