//! Variables of programs that are not shown: they stay with what they were given for.

use crate::mask::{MASK, hidden_parts, nothing_to_keep, shown_env};
use crate::shell::ShellTarget;
use crate::target::{Target, TargetError};

/// What a program holds that is not shown.
pub fn hidden_env(program: &ShellTarget) -> Vec<String> {
    let hidden = program.env.iter();
    let hidden = hidden.filter(|(name, value)| shown_env(name, value) == MASK);
    hidden.flat_map(|(_, value)| hidden_parts(value)).collect()
}

/// Whether two targets start the same: then what was given for one may go to the other.
fn is_same(one: &Target, other: &Target) -> bool {
    match (one, other) {
        (Target::Shell(one), Target::Shell(other)) => one.program() == other.program(),
        (Target::Python(one), Target::Python(other)) => {
            one.source == other.source && one.interpreter() == other.interpreter()
        }
        (Target::Http(_) | Target::Shell(_) | Target::Python(_), _) => false,
    }
}

/// What a masked variable stands for: the value that is there already, if what is started stays the same.
pub fn unmask_env(
    name: &str,
    value: String,
    stands: Option<&Target>,
    target: &Target,
) -> Result<String, TargetError> {
    if value != MASK {
        return Ok(value);
    }
    let field = format!("{}.env.{name}", target.kind());
    let found = stands.and_then(|stands| {
        let mut env = stands.program()?.env.iter();
        let kept = env.find(|(other, _)| other == name)?;
        Some((stands, kept.1.clone()))
    });
    match found {
        Some((stands, kept)) if is_same(stands, target) => Ok(kept),
        Some((stands, _)) => Err(stays_with(stands, field)),
        None => Err(nothing_to_keep(field)),
    }
}

/// Refuses to start something else than before with a variable whose value is not shown, unless it is among those `given` again.
pub fn check_program(
    target: &Target,
    before: &Target,
    given: &[String],
) -> Result<(), TargetError> {
    let (Some(program), false) = (target.program(), is_same(target, before)) else {
        return Ok(());
    };
    // Of another kind nothing is kept.
    if target.kind() != before.kind() {
        return Ok(());
    }
    let is_kept =
        |(name, value): &&(String, String)| !given.contains(name) && shown_env(name, value) == MASK;
    let kept = program.env.iter().find(is_kept);
    kept.map_or(Ok(()), |(name, _)| {
        Err(stays_with(before, format!("{}.env.{name}", target.kind())))
    })
}

fn stays_with(stands: &Target, field: String) -> TargetError {
    let (given_for, what) = match stands {
        Target::Shell(shell) => (shell.program(), "program"),
        Target::Http(_) | Target::Python(_) => ("the script as it was", "script"),
    };
    let detail = format!(
        "its value, which is not shown, was given for {given_for} and goes to no other {what} by itself: write it again, write \
         {{{{ secret('name') }}}}, or take it away"
    );
    TargetError { field, detail }
}
