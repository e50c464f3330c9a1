//! How a command ends when it does not end well: one line for people, one number for scripts.

use std::fmt;

/// Exit codes; `punctual --help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Whoever reads our output has had enough: nothing is wrong.
    Fine = 0,
    /// The server refused, or has no such thing.
    Refused = 1,
    /// The command line, the configuration, a file or the data folder is at fault.
    Usage = 2,
    /// No server answers.
    Unreachable = 3,
}

impl Code {
    /// What all failures of a code have in common.
    fn title(self) -> &'static str {
        match self {
            Self::Fine => "Nothing is wrong",
            Self::Refused => "The server refused",
            Self::Usage => "The command cannot be carried out as it was given",
            Self::Unreachable => "No server answers",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub code: Code,
    /// For people.
    pub text: String,
    /// What the server answered, if it answered with a problem.
    pub problem: Option<serde_json::Value>,
}

impl Failure {
    fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            problem: None,
        }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Code::Usage, text)
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::new(Code::Refused, text)
    }

    pub(crate) fn unreachable(text: impl Into<String>) -> Self {
        Self::new(Code::Unreachable, text)
    }

    /// The reader of a pipe went away.
    pub(crate) fn closed_pipe() -> Self {
        Self::new(Code::Fine, "")
    }

    /// The problem document that programs read: the server's own where there is one.
    pub(crate) fn to_problem(&self) -> serde_json::Value {
        self.problem.clone().unwrap_or_else(|| {
            serde_json::json!({
                "type": "about:blank",
                "title": self.code.title(),
                "detail": self.text,
            })
        })
    }

    /// Whether the server refused with this problem.
    pub(crate) fn is_problem(&self, name: &str) -> bool {
        let problem = self.problem.as_ref().map(|problem| &problem["type"]);
        problem
            .and_then(serde_json::Value::as_str)
            .is_some_and(|kind| kind.ends_with(name))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An error and what caused it, in one line. A cause that its error already quotes is not repeated.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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
