//! How a command ends when it does not end well: one line for people, one number for scripts.

use std::fmt;

/// Exit codes; `punctual --help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Whoever reads our output has had enough: nothing is wrong.
    Fine = 0,
    /// The server refused, or has no such thing.
    Refused = 1,
    /// The command line, the configuration, a file or the data folder is at fault.
    Usage = 2,
    /// No server answers.
    Unreachable = 3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub text: String,
}

impl Failure {
    pub fn usage(text: impl Into<String>) -> Self {
        Self {
            code: Code::Usage,
            text: text.into(),
        }
    }

    pub fn refused(text: impl Into<String>) -> Self {
        Self {
            code: Code::Refused,
            text: text.into(),
        }
    }

    pub fn unreachable(text: impl Into<String>) -> Self {
        Self {
            code: Code::Unreachable,
            text: text.into(),
        }
    }

    /// The reader of a pipe went away.
    pub fn closed_pipe() -> Self {
        Self {
            code: Code::Fine,
            text: String::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An error and what caused it, in one line. A cause that its error already quotes is not repeated.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
