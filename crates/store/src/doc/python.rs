//! A script as it is stored.

use std::borrow::Cow;

use model::PythonTarget;
use serde::{Deserialize, Serialize};

use super::shell::ShellDoc;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PythonDoc<'a> {
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    program: ShellDoc<'a>,
}

impl<'a> PythonDoc<'a> {
    pub(super) fn of(python: &'a PythonTarget) -> Self {
        Self {
            source: Cow::Borrowed(&python.source),
            program: ShellDoc::of(&python.program),
        }
    }

    /// As with other targets, what was accepted once is not checked again.
    pub(super) fn read(self) -> PythonTarget {
        PythonTarget {
            source: self.source.into_owned(),
            program: self.program.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::ExitCodes;

    use super::*;

    #[test]
    fn stored_scripts_never_change() {
        let golden = include_str!("golden/script.json").trim_end();
        let mut script = PythonTarget::new("print(\"a\")\n").unwrap();
        script.call("/usr/bin/python3", &["-v".to_owned()]).unwrap();
        script.program.env = vec![("TOKEN".to_owned(), "{{ secret('pg') }}".to_owned())];
        script.program.exit.dead = ExitCodes::new([2]);
        let stored = serde_json::to_string(&PythonDoc::of(&script)).unwrap();
        assert_eq!(stored, golden);
        let read: PythonDoc<'_> = serde_json::from_str(golden).unwrap();
        assert_eq!(read.read(), script);
    }
}
