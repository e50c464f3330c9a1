//! Commands: a program of the node's machine, its arguments, and what it finds.

use std::fmt;

use crate::exit::ExitMap;
use crate::target::TargetError;
use crate::{limits, mask};

/// A command. What it holds has been checked: it can be started as it is, where its node allows it.
#[derive(Clone, PartialEq, Eq)]
pub struct ShellTarget {
    /// The program, by its absolute path, and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// The folder it starts in; one of its own, which is removed after it, unless it is said.
    pub dir: Option<String>,
    /// Its environment besides our own; values may be templates.
    pub env: Vec<(String, String)>,
    pub exit: ExitMap,
    /// Bytes of its output that are kept.
    pub output_max: usize,
}

/// Values whose names say secret stand in no log. Arguments may be seen by everyone on the machine anyway.
impl fmt::Debug for ShellTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): &(String, String)| (name.clone(), mask::shown_env(name, value));
        f.debug_struct("ShellTarget")
            .field("command", &self.command)
            .field("dir", &self.dir)
            .field("env", &self.env.iter().map(shown).collect::<Vec<_>>())
            .field("exit", &self.exit)
            .field("output_max", &self.output_max)
            .finish()
    }
}

impl ShellTarget {
    /// The host that a secret must name to be handed to commands.
    pub const SECRET_HOST: &'static str = "shell";

    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Result<Self, TargetError> {
        let command = command.into_iter().map(Into::into).collect();
        Ok(Self {
            command: check_command(command)?,
            dir: None,
            env: Vec::new(),
            exit: ExitMap::default(),
            output_max: limits::OUTPUT_DEFAULT,
        })
    }

    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// Sets a variable, or takes it away.
    pub fn set_env(&mut self, name: &str, value: Option<String>) -> Result<(), TargetError> {
        self.env.retain(|(other, _)| other != name);
        if let Some(value) = value {
            self.env.push((name.to_owned(), value));
        }
        if self.env.len() > limits::ENV_MAX {
            let detail = format!("at most {} variables", limits::ENV_MAX);
            return Err(refused(format!("shell.env.{name}"), detail));
        }
        Ok(())
    }

    /// Whatever its parts cannot know of each other.
    pub fn check(&self) -> Result<(), TargetError> {
        self.exit.check("shell")
    }
}

fn refused(field: String, detail: impl Into<String>) -> TargetError {
    let detail = detail.into();
    TargetError { field, detail }
}

/// A program and its arguments.
pub fn check_command(command: Vec<String>) -> Result<Vec<String>, TargetError> {
    let refuse = |detail: String| Err(refused("shell.command".to_owned(), detail));
    let Some(program) = command.first() else {
        return refuse("a command needs a program: write [\"/usr/bin/pg_dump\", \"shop\"]".into());
    };
    if let Err(why) = check_path(program) {
        return refuse(format!(
            "the program {why}: write its absolute path, such as /usr/bin/pg_dump"
        ));
    }
    if command.len() > limits::COMMAND_PARTS_MAX {
        let most = limits::COMMAND_PARTS_MAX;
        return refuse(format!("a command has at most {most} parts"));
    }
    let bytes: usize = command.iter().map(String::len).sum();
    if bytes > limits::COMMAND_BYTES_MAX {
        let most = limits::COMMAND_BYTES_MAX;
        return refuse(format!("the command is longer than {most} bytes"));
    }
    if command.iter().any(|part| part.contains('\0')) {
        return refuse("no argument can hold the character NUL".to_owned());
    }
    Ok(command)
}

/// A folder to start in.
pub fn check_dir(dir: &str) -> Result<String, TargetError> {
    let checked = check_path(dir);
    checked.map_err(|why| {
        let detail = format!("the folder {why}: write its absolute path, such as /srv/reports");
        refused("shell.dir".to_owned(), detail)
    })?;
    Ok(dir.to_owned())
}

fn check_path(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        return Err("has no absolute path");
    }
    if path.len() > limits::PATH_MAX {
        return Err("has a path that is too long");
    }
    if path.contains(char::is_control) {
        return Err("has a path with control characters");
    }
    if path.split('/').any(|part| part == "." || part == "..") {
        return Err("has . or .. in its path");
    }
    Ok(())
}

/// A variable of the environment.
pub fn check_env(name: &str, value: &str) -> Result<(), TargetError> {
    let shown: String = name.chars().take(64).collect();
    let refuse = |detail: String| Err(refused(format!("shell.env.{shown}"), detail));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !begins || name.len() > limits::NAME_MAX || !name.bytes().all(is_part) {
        let most = limits::NAME_MAX;
        return refuse(format!(
            "a variable's name has 1 to {most} letters, digits and underscores, and begins with no digit"
        ));
    }
    if name.starts_with("PUNCTUAL_") {
        let detail = format!("the variable {name} is set by punctual itself: leave it out");
        return refuse(detail);
    }
    // What the loader of programs does for them it would do for ours as well.
    if name.starts_with("LD_") {
        return refuse(format!(
            "the variable {name} changes which code a program loads: call a script of yours that sets it"
        ));
    }
    if value.len() > limits::RENDERED_LINE_MAX {
        let most = limits::RENDERED_LINE_MAX;
        return refuse(format!("the value is longer than {most} bytes"));
    }
    if value.contains('\0') {
        return refuse("no value can hold the character NUL".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_its_absolute_path() {
        assert!(ShellTarget::new(["/usr/bin/env", "-", "$(x)"]).is_ok());
        for (command, part) in [
            (vec![], "needs a program"),
            (vec!["pg_dump"], "absolute path"),
            (vec!["/opt/../bin/sh"], ".."),
            (vec!["/opt/./sh"], ".."),
            (vec!["/a\nb"], "control"),
            (vec!["/bin/echo", "a\0b"], "NUL"),
        ] {
            let error = ShellTarget::new(command).unwrap_err();
            assert_eq!(error.field, "shell.command");
            assert!(error.detail.contains(part), "{error}");
        }
        assert!(ShellTarget::new(vec!["/a"; limits::COMMAND_PARTS_MAX + 1]).is_err());
        let long = "x".repeat(limits::COMMAND_BYTES_MAX);
        assert!(ShellTarget::new(["/a", &long]).is_err());
    }

    #[test]
    fn variables_have_names_and_are_not_ours() {
        assert!(check_env("PGPASSWORD", "{{ secret('a') }}").is_ok());
        for name in ["", "1A", "A-B", "A=B", "PUNCTUAL_RUN", "LD_PRELOAD", "Ä"] {
            assert!(check_env(name, "x").is_err(), "{name}");
        }
        assert!(check_env("A", "a\0b").is_err());
    }

    #[test]
    fn a_command_in_a_log_shows_no_secret() {
        let mut target = ShellTarget::new(["/bin/true"]).unwrap();
        target
            .set_env("PGPASSWORD", Some("planted".into()))
            .unwrap();
        target.set_env("PGUSER", Some("shown".into())).unwrap();
        let text = format!("{target:?}");
        assert!(
            text.contains("shown") && !text.contains("planted"),
            "{text}"
        );
    }
}
