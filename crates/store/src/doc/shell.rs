//! A command as it is stored.

use std::borrow::Cow;

use model::{ExitCodes, ExitMap, ShellTarget, limits};
use serde::{Deserialize, Serialize};

use super::definition::other;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellDoc<'a> {
    #[serde(borrow)]
    command: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    dir: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    success: Vec<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retry: Vec<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fail: Vec<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dead: Vec<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_max: Option<usize>,
}

impl<'a> ShellDoc<'a> {
    pub(super) fn of(shell: &'a ShellTarget) -> Self {
        let text = |text: &'a String| Cow::Borrowed(text.as_str());
        Self {
            command: shell.command.iter().map(text).collect(),
            dir: shell.dir.as_ref().map(text),
            env: (shell.env.iter())
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            success: shell.exit.success.iter().collect(),
            retry: shell.exit.retry.iter().collect(),
            fail: shell.exit.fail.iter().collect(),
            dead: shell.exit.dead.iter().collect(),
            output_max: other(shell.output_max, limits::OUTPUT_DEFAULT),
        }
    }

    /// As with other targets, what was accepted once is not checked again.
    pub(super) fn read(self) -> ShellTarget {
        ShellTarget {
            command: self.command.into_iter().map(Cow::into_owned).collect(),
            dir: self.dir.map(Cow::into_owned),
            env: (self.env.into_iter())
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
            exit: ExitMap {
                success: ExitCodes::new(self.success),
                retry: ExitCodes::new(self.retry),
                fail: ExitCodes::new(self.fail),
                dead: ExitCodes::new(self.dead),
            },
            output_max: self.output_max.unwrap_or(limits::OUTPUT_DEFAULT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_exit_codes_never_change() {
        let golden = include_str!("golden/exit_codes.json").trim_end();
        let mut shell = ShellTarget::new(["/bin/true"]).unwrap();
        shell.exit.retry = ExitCodes::new([75, 111]);
        shell.exit.fail = ExitCodes::new([1]);
        let stored = serde_json::to_string(&ShellDoc::of(&shell)).unwrap();
        assert_eq!(stored, golden);
        let read: ShellDoc<'_> = serde_json::from_str(golden).unwrap();
        assert_eq!(read.read(), shell);
    }
}
