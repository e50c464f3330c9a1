//! What counts as success: a set of statuses, and what the answer says in one place. Without a rule it is any 2xx.

use std::fmt;

use crate::limits;
use crate::target::TargetError;

/// A rule of a target. What it does not mention is as usual.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Success {
    pub status: Option<Statuses>,
    pub json: Option<JsonEquals>,
}

/// Ranges of statuses, as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(Vec<StatusRange>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    first: u16,
    last: u16,
}

/// The answer is JSON, and what is at the pointer equals a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonEquals {
    /// RFC 6901.
    pub pointer: String,
    /// JSON.
    pub equals: String,
}

pub const STATUS_MIN: u16 = 200;
pub const STATUS_MAX: u16 = 599;

fn refused(field: &str, detail: impl Into<String>) -> TargetError {
    TargetError {
        field: format!("http.success.{field}"),
        detail: detail.into(),
    }
}

impl StatusRange {
    /// `404`, `2xx` or `300-399`.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = match (text.split_once('-'), text.strip_suffix("xx")) {
            (Some((first, last)), _) => (number(first)?, number(last)?),
            (None, Some(hundred)) if hundred.len() == 1 => {
                let first = number(hundred)?.checked_mul(100)?;
                (first, first + 99)
            }
            (None, _) => (number(text)?, number(text)?),
        };
        let is_one = first <= last && first >= STATUS_MIN && last <= STATUS_MAX;
        is_one.then_some(Self { first, last })
    }

    /// The one status that it names, if it is no range.
    pub fn single(self) -> Option<u16> {
        (self.first == self.last).then_some(self.first)
    }
}

fn number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = *self;
        if first == last {
            write!(f, "{first}")
        } else if first % 100 == 0 && last == first + 99 {
            write!(f, "{}xx", first / 100)
        } else {
            write!(f, "{first}-{last}")
        }
    }
}

impl Statuses {
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, TargetError> {
        let mut ranges = Vec::new();
        for text in texts {
            let range = StatusRange::parse(text).ok_or_else(|| {
                let shown: String = text.chars().take(32).collect();
                let detail = format!(
                    "{shown:?} is no status from {STATUS_MIN} to {STATUS_MAX}: write 404, \"2xx\" or \"300-399\""
                );
                refused("status", detail)
            })?;
            ranges.push(range);
            if ranges.len() > limits::STATUSES_MAX {
                let detail = format!("at most {} statuses or ranges", limits::STATUSES_MAX);
                return Err(refused("status", detail));
            }
        }
        if ranges.is_empty() {
            let detail = "no status is named: no attempt could succeed; leave it out for 2xx";
            return Err(refused("status", detail));
        }
        Ok(Self(ranges))
    }

    pub fn ranges(&self) -> &[StatusRange] {
        &self.0
    }

    fn contains(&self, status: u16) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|range| (range.first..=range.last).contains(&status))
    }
}

impl JsonEquals {
    /// `equals` is JSON already.
    pub fn new(pointer: &str, equals: String) -> Result<Self, TargetError> {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let detail = "a JSON pointer begins with a slash, such as /ok or /result/0/state";
            return Err(refused("json.pointer", detail));
        }
        let is_escaped = |rest: &str| rest.starts_with(['0', '1']);
        if !pointer.split('~').skip(1).all(is_escaped) {
            let detail = "in a JSON pointer ~ is written ~0, and a slash within a name ~1";
            return Err(refused("json.pointer", detail));
        }
        for (field, text) in [("json.pointer", pointer), ("json.equals", &equals)] {
            if text.len() > limits::SUCCESS_JSON_MAX {
                let detail = format!("at most {} bytes", limits::SUCCESS_JSON_MAX);
                return Err(refused(field, detail));
            }
        }
        let pointer = pointer.to_owned();
        Ok(Self { pointer, equals })
    }
}

impl Success {
    /// Whether a status is one of success, as far as the status says it.
    pub fn has_status(&self, status: u16) -> bool {
        match &self.status {
            Some(statuses) => statuses.contains(status),
            None => (200..=299).contains(&status),
        }
    }

    /// Bytes of an answer that have to be read to know.
    pub fn reads(&self) -> usize {
        if self.json.is_some() {
            limits::SUCCESS_READ_MAX
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(texts: &[&str]) -> Result<Success, TargetError> {
        let status = Some(Statuses::new(texts.iter().copied())?);
        Ok(Success { status, json: None })
    }

    #[test]
    fn a_set_of_statuses_is_numbers_hundreds_and_ranges() {
        let set = rule(&["2xx", "404", "300-305"]).unwrap();
        let inside = [200, 299, 404, 300, 305].map(|status| set.has_status(status));
        let outside = [199, 306, 403, 500].map(|status| set.has_status(status));
        assert_eq!((inside, outside), ([true; 5], [false; 4]));
        let shown: Vec<String> = set
            .status
            .unwrap()
            .0
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, ["2xx", "404", "300-305"]);
        let usual = Success::default();
        assert!(usual.has_status(204) && !usual.has_status(302));
    }

    #[test]
    fn what_is_no_status_is_refused_with_the_forms_that_are() {
        for text in [
            "", "1xx", "6xx", "xx", "22x", "99", "600", "+200", "300-", "399-300", "2xx-3xx",
        ] {
            let error = rule(&[text]).unwrap_err();
            assert!(error.detail.contains("300-399"), "{text}: {error}");
            assert_eq!(error.field, "http.success.status");
        }
        assert!(rule(&[]).unwrap_err().detail.contains("2xx"));
        assert!(rule(&["200"; limits::STATUSES_MAX + 1]).is_err());
    }

    #[test]
    fn a_pointer_is_one_as_rfc_6901_has_it() {
        for pointer in ["", "/", "/ok", "/a/0/b~1c~0d"] {
            assert!(
                JsonEquals::new(pointer, "true".to_owned()).is_ok(),
                "{pointer}"
            );
        }
        for pointer in ["ok", "#/ok", "/a~", "/a~2b"] {
            let error = JsonEquals::new(pointer, "true".to_owned()).unwrap_err();
            assert_eq!(error.field, "http.success.json.pointer", "{pointer}");
        }
        let long = "1".repeat(limits::SUCCESS_JSON_MAX + 1);
        assert_eq!(
            JsonEquals::new("", long).unwrap_err().field,
            "http.success.json.equals"
        );
    }
}
