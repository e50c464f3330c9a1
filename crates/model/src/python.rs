//! Scripts: source for an interpreter, which a node runs in a sandbox.

use std::fmt;

use crate::limits;
use crate::shell::{ShellTarget, check_command};
use crate::target::TargetError;

/// A script. What it holds has been checked: it can be started as it is, where its node has the interpreter.
#[derive(Clone, PartialEq, Eq)]
pub struct PythonTarget {
    pub source: String,
    /// The interpreter and what stands behind its script, the environment, and what exit codes say. It has no folder but that
    /// of its sandbox.
    pub program: ShellTarget,
}

/// Source may hold anything, and stands in no log.
impl fmt::Debug for PythonTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonTarget")
            .field("source", &self.source.len())
            .field("program", &self.program)
            .finish()
    }
}

impl PythonTarget {
    /// What runs a script that names no interpreter.
    pub const INTERPRETER: &'static str = "/usr/bin/python3";

    pub fn new(source: &str) -> Result<Self, TargetError> {
        Ok(Self {
            source: check_source(source)?,
            program: ShellTarget::new([Self::INTERPRETER])?,
        })
    }

    pub fn interpreter(&self) -> &str {
        self.program.program()
    }

    pub fn args(&self) -> &[String] {
        self.program.command.get(1..).unwrap_or_default()
    }

    /// Another interpreter, or other arguments.
    pub fn call(&mut self, interpreter: &str, args: &[String]) -> Result<(), TargetError> {
        let parts = std::iter::once(interpreter.to_owned()).chain(args.iter().cloned());
        self.program.command = check_call(parts.collect())?;
        Ok(())
    }

    /// Whatever its parts cannot know of each other.
    pub fn check(&self) -> Result<(), TargetError> {
        self.program.exit.check("python")
    }
}

/// An interpreter and what stands behind its script.
fn check_call(parts: Vec<String>) -> Result<Vec<String>, TargetError> {
    // What is wrong with the first part is about the interpreter.
    let has_interpreter = check_command(parts.iter().take(1).cloned().collect());
    let field = match has_interpreter {
        Err(_) => "python.interpreter",
        Ok(_) => "python.args",
    };
    check_command(parts).map_err(|error| TargetError {
        field: field.to_owned(),
        detail: error.detail,
    })
}

/// The source of a script.
pub fn check_source(source: &str) -> Result<String, TargetError> {
    let refuse = |detail: String| {
        let field = "python.source".to_owned();
        Err(TargetError { field, detail })
    };
    if source.trim().is_empty() {
        return refuse("the script is empty: write its source, such as print(\"done\")".to_owned());
    }
    if source.len() > limits::SOURCE_MAX {
        let most = limits::SOURCE_MAX;
        return refuse(format!("the script is longer than {most} bytes"));
    }
    Ok(source.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_source_and_an_interpreter() {
        let mut script = PythonTarget::new("print(1)").unwrap();
        assert_eq!(script.interpreter(), "/usr/bin/python3");
        script
            .call("/usr/bin/perl", &["a b".to_owned(), String::new()])
            .unwrap();
        assert_eq!(
            (script.interpreter(), script.args().len()),
            ("/usr/bin/perl", 2)
        );
        assert_eq!(
            script.call("python3", &[]).unwrap_err().field,
            "python.interpreter"
        );
        let many = vec![String::new(); limits::COMMAND_PARTS_MAX];
        let refused = script.call("/usr/bin/perl", &many).unwrap_err();
        assert_eq!(refused.field, "python.args");
        for source in ["", " \n", &"x".repeat(limits::SOURCE_MAX + 1)] {
            assert_eq!(
                PythonTarget::new(source).unwrap_err().field,
                "python.source"
            );
        }
    }

    #[test]
    fn a_script_in_a_log_shows_no_source() {
        let script = PythonTarget::new("planted = 1").unwrap();
        assert!(!format!("{script:?}").contains("planted"));
    }
}
