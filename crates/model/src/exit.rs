//! What the exit codes of a program say.

use std::collections::BTreeSet;

use crate::target::TargetError;

/// What each exit code means. One means one thing only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitMap {
    /// 0 where nothing is said.
    pub success: ExitCodes,
    /// It could not do its work now: it is tried again, also beyond the job's `attempts_max`.
    pub retry: ExitCodes,
    /// As any code that is not named.
    pub fail: ExitCodes,
    /// Trying again cannot help.
    pub dead: ExitCodes,
}

/// A set of exit codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCodes(BTreeSet<u8>);

/// What an exit code means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitMeaning {
    Success,
    Retry,
    Fail,
    Dead,
}

impl ExitCodes {
    pub fn new(codes: impl IntoIterator<Item = u8>) -> Self {
        Self(codes.into_iter().collect())
    }

    fn has(&self, code: i32) -> bool {
        u8::try_from(code).is_ok_and(|code| self.0.contains(&code))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = u8> {
        self.0.iter().copied()
    }
}

impl ExitMap {
    pub fn meaning(&self, code: i32) -> ExitMeaning {
        let named = [
            (&self.success, ExitMeaning::Success),
            (&self.retry, ExitMeaning::Retry),
            (&self.fail, ExitMeaning::Fail),
            (&self.dead, ExitMeaning::Dead),
        ];
        let found = named.into_iter().find(|(codes, _)| codes.has(code));
        match found {
            Some((_, meaning)) => meaning,
            None if code == 0 && self.success.is_empty() => ExitMeaning::Success,
            None => ExitMeaning::Fail,
        }
    }

    /// Whether each code means one thing. `kind` is that of the target.
    pub fn check(&self, kind: &str) -> Result<(), TargetError> {
        let mut known: Vec<(u8, &str)> = Vec::new();
        for (name, codes) in [
            ("success", &self.success),
            ("retry", &self.retry),
            ("fail", &self.fail),
            ("dead", &self.dead),
        ] {
            for code in codes.iter() {
                if let Some((_, other)) = known.iter().find(|(other, _)| *other == code) {
                    let detail = format!("{code} is {other} already: an exit code means one thing");
                    let field = format!("{kind}.{name}");
                    return Err(TargetError { field, detail });
                }
                known.push((code, name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_nobody_names_fails_unless_it_is_0() {
        let mut map = ExitMap::default();
        assert_eq!(map.meaning(0), ExitMeaning::Success);
        assert_eq!(map.meaning(1), ExitMeaning::Fail);
        map.success = ExitCodes::new([1, 3]);
        map.retry = ExitCodes::new([75]);
        map.fail = ExitCodes::new([4]);
        map.dead = ExitCodes::new([64]);
        for (code, meaning) in [
            (0, ExitMeaning::Fail),
            (1, ExitMeaning::Success),
            (3, ExitMeaning::Success),
            (4, ExitMeaning::Fail),
            (64, ExitMeaning::Dead),
            (75, ExitMeaning::Retry),
            (-1, ExitMeaning::Fail),
            (256, ExitMeaning::Fail),
        ] {
            assert_eq!(map.meaning(code), meaning, "{code}");
        }
        // 0 may be named as anything else.
        map.success = ExitCodes::default();
        map.retry = ExitCodes::new([0]);
        assert_eq!(map.meaning(0), ExitMeaning::Retry);
    }

    #[test]
    fn a_code_means_one_thing() {
        let codes = || ExitCodes::new([7]);
        let none = ExitCodes::default;
        let all = |success, retry, fail, dead| ExitMap {
            success,
            retry,
            fail,
            dead,
        };
        assert_eq!(all(none(), codes(), none(), none()).check("shell"), Ok(()));
        for (map, field) in [
            (all(codes(), codes(), none(), none()), "shell.retry"),
            (all(codes(), none(), codes(), none()), "shell.fail"),
            (all(codes(), none(), none(), codes()), "shell.dead"),
            (all(none(), codes(), codes(), none()), "shell.fail"),
            (all(none(), codes(), none(), codes()), "shell.dead"),
            (all(none(), none(), codes(), codes()), "shell.dead"),
        ] {
            let error = map.check("shell").unwrap_err();
            assert_eq!(error.field, field);
            assert!(error.detail.starts_with("7 is "), "{error}");
        }
    }
}
