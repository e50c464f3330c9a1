//! Reading objects field by field: serde splits an object into names and raw values, in one pass and
//! without building a tree, and each value is read by whoever knows what it must be. So every
//! refusal knows its path.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use model::schedule::parse_span;
use model::{Timestamp, limits};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{depth, suggest};
use crate::ops::{Fault, FieldError, Patch};

pub(super) type Read<T> = Result<T, FieldError>;

/// Fields read of one object; no object of ours has as many.
pub const FIELDS_MAX: usize = 256;

/// Where a value stands: what is before the last point, and the name after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'p> {
    pub parent: &'p str,
    pub name: &'p str,
}

impl Path<'_> {
    pub(super) const ROOT: Path<'static> = Path {
        parent: "",
        name: "",
    };

    pub(super) fn invalid(self, detail: impl Into<String>) -> FieldError {
        self.refuse(Fault::Invalid, detail)
    }

    pub(super) fn refuse(self, fault: Fault, detail: impl Into<String>) -> FieldError {
        FieldError::new(fault, self.to_string(), detail)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = if self.parent.is_empty() || self.name.is_empty() {
            ""
        } else {
            "."
        };
        write!(f, "{}{point}{}", self.parent, self.name)
    }
}

/// What a client wrote, short enough to be shown to it.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// One value, known to be JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a>(pub &'a str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

impl Shape {
    fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn shape(self) -> Shape {
        match self.0.as_bytes().first() {
            Some(b'"') => Shape::Text,
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::List,
            Some(b't' | b'f') => Shape::Bool,
            Some(b'n') => Shape::Null,
            Some(_) | None => Shape::Number,
        }
    }

    fn expected(self, path: Path<'_>, what: &str) -> FieldError {
        path.invalid(format!("expected {what}, not {}", self.shape().as_str()))
    }

    pub(super) fn text(self, path: Path<'_>) -> Read<Cow<'a, str>> {
        self.text_or(path, "a string")
    }

    /// A string; a refusal says what else would do.
    pub(super) fn text_or(self, path: Path<'_>, what: &str) -> Read<Cow<'a, str>> {
        let inner = self
            .0
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        match inner {
            None => Err(self.expected(path, what)),
            Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
            Some(_) => serde_json::from_str(self.0)
                .map(Cow::Owned)
                .map_err(|_| path.invalid("the string holds an escape that is no character")),
        }
    }

    pub(super) fn boolean(self, path: Path<'_>) -> Read<bool> {
        match self.0 {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.expected(path, "true or false")),
        }
    }

    /// A whole number within a range.
    pub(super) fn integer(self, path: Path<'_>, least: i64, most: i64) -> Read<i64> {
        let wanted = || format!("a whole number from {least} to {most}");
        if self.shape() != Shape::Number {
            return Err(self.expected(path, &wanted()));
        }
        let number = self
            .0
            .parse()
            .ok()
            .filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| path.invalid(format!("expected {}, not {}", wanted(), shown(self.0))))
    }

    pub(super) fn number(self, path: Path<'_>, what: &str) -> Read<f64> {
        if self.shape() != Shape::Number {
            return Err(self.expected(path, what));
        }
        let number = self
            .0
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        number.ok_or_else(|| path.invalid(format!("expected {what}, not {}", shown(self.0))))
    }

    pub(super) fn duration(self, path: Path<'_>) -> Read<Duration> {
        let text = self.text_or(path, "a duration such as \"30s\", \"5m\" or \"PT15M\"")?;
        parse_span(&text).map_err(|error| path.invalid(error.to_string()))
    }

    /// RFC 3339, or epoch seconds or milliseconds.
    pub(super) fn moment(self, path: Path<'_>) -> Read<Timestamp> {
        if self.shape() == Shape::Number {
            let number = self.0.parse::<i64>().map_err(|_| {
                path.invalid(format!(
                    "{} is not epoch seconds or milliseconds",
                    shown(self.0)
                ))
            })?;
            return Timestamp::from_number(number).map_err(|error| path.invalid(error.to_string()));
        }
        let text = self.text_or(
            path,
            "a moment such as \"2026-12-24T18:00:00Z\", or epoch seconds",
        )?;
        Timestamp::parse(&text).map_err(|error| path.invalid(error.to_string()))
    }

    /// A list of at most `most` values, each read by `read`.
    pub(super) fn list<T>(
        self,
        path: Path<'_>,
        what: &str,
        most: usize,
        read: impl Fn(Value<'a>, Path<'_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        if self.shape() != Shape::List {
            return Err(self.expected(path, what));
        }
        let list: Vec<&'a RawValue> =
            serde_json::from_str(self.0).map_err(|_| self.expected(path, what))?;
        if list.len() > most {
            let count = list.len();
            return Err(path.invalid(format!("{count} entries: at most {most}")));
        }
        let values = list.into_iter().map(|raw| Value(raw.get()));
        values.map(|value| read(value, path)).collect()
    }

    /// One of a few words.
    pub(super) fn choice<T>(
        self,
        path: Path<'_>,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Read<T> {
        let list = || words.join(", ");
        let text = self.text_or(path, &format!("one of {}", list()))?;
        parse(&text).ok_or_else(|| {
            let text = shown(&text);
            match suggest::nearest(&text, words) {
                Some(word) => {
                    path.invalid(format!("{text:?} is not known: did you mean {word:?}?"))
                }
                None => path.invalid(format!("{text:?} is not known: use one of {}", list())),
            }
        })
    }
}

/// An object's fields in the order they were written.
pub(super) struct Fields<'a> {
    parent: &'static str,
    list: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// The whole body of a request: UTF-8, JSON, not too deep, an object of known fields.
pub(super) fn document<'a>(body: &'a [u8], known: &[&str]) -> Read<Fields<'a>> {
    let text = str::from_utf8(body).map_err(|error| {
        let detail = format!(
            "the body is not UTF-8: byte {} does not fit",
            error.valid_up_to()
        );
        Path::ROOT.refuse(Fault::Syntax, detail)
    })?;
    if text.trim_ascii().is_empty() {
        return Err(Path::ROOT.refuse(Fault::Syntax, "the body is empty: send a JSON object"));
    }
    depth::check(text).map_err(|field| {
        let detail = format!("the body nests deeper than {} levels", limits::DEPTH_MAX);
        FieldError::new(Fault::Depth, field.map_or_else(String::new, shown), detail)
    })?;
    Fields::split(text, "", Path::ROOT, known)
}

impl<'a> Fields<'a> {
    /// The fields of an object that stands at `path` and may hold what is `known`.
    pub(super) fn of(
        value: Value<'a>,
        path: Path<'static>,
        at: &'static str,
        known: &[&str],
    ) -> Read<Self> {
        Self::split(value.0, at, path, known)
    }

    fn split(text: &'a str, at: &'static str, path: Path<'_>, known: &[&str]) -> Read<Self> {
        let fields = Self::any(text, at, path)?;
        for (name, _) in &fields.list {
            if !known.contains(&name.as_ref()) {
                return Err(unknown(at, name, known));
            }
        }
        Ok(fields)
    }

    /// The fields of an object whose names its author chooses.
    pub(super) fn any(text: &'a str, at: &'static str, path: Path<'_>) -> Read<Self> {
        let entries: Entries<'a> = serde_json::from_str(text).map_err(|error| {
            if error.is_data() {
                Value(text.trim_ascii()).expected(path, "an object")
            } else {
                path.refuse(Fault::Syntax, format!("the body is not JSON: {error}"))
            }
        })?;
        if entries.more {
            return Err(path.invalid(format!("more than {FIELDS_MAX} fields")));
        }
        let list = entries.list;
        for (index, (name, _)) in list.iter().enumerate() {
            if list.iter().take(index).any(|(other, _)| other == name) {
                let detail = format!("{:?} is given twice: leave one out", shown(name));
                return Err(FieldError::new(Fault::Duplicate, join(at, name), detail));
            }
        }
        Ok(Self { parent: at, list })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.list
            .iter()
            .map(|(name, value)| (name.as_ref(), *value))
    }

    /// What is said about one field: nothing, null, or a value.
    pub(super) fn patch<T>(
        &self,
        name: &str,
        read: impl FnOnce(Value<'a>, Path<'_>) -> Read<T>,
    ) -> Read<Patch<T>> {
        let Some((_, value)) = self.list.iter().find(|(given, _)| given == name) else {
            return Ok(Patch::Keep);
        };
        if value.shape() == Shape::Null {
            return Ok(Patch::Reset);
        }
        read(
            *value,
            Path {
                parent: self.parent,
                name,
            },
        )
        .map(Patch::Set)
    }

    /// The same where null and nothing mean the same.
    pub(super) fn get<T>(
        &self,
        name: &str,
        read: impl FnOnce(Value<'a>, Path<'_>) -> Read<T>,
    ) -> Read<Option<T>> {
        self.patch(name, read).map(Patch::into_given)
    }
}

/// A path whose last part a client chose, short enough to be shown to it.
pub(super) fn join(parent: &str, name: &str) -> String {
    Path {
        parent,
        name: &shown(name),
    }
    .to_string()
}

fn unknown(at: &str, name: &str, known: &[&str]) -> FieldError {
    let detail = match suggest::nearest(name, known) {
        Some(near) => format!(
            "{:?} is not a known field: did you mean {near:?}?",
            shown(name)
        ),
        None if known.is_empty() => format!("{:?} is not a known field", shown(name)),
        None => format!(
            "{:?} is not a known field: known are {}",
            shown(name),
            known.join(", ")
        ),
    };
    FieldError::new(Fault::Unknown, join(at, name), detail)
}

/// An object as serde hands it over: names, borrowed where they hold no escapes, and raw values.
struct Entries<'a> {
    list: Vec<(Cow<'a, str>, Value<'a>)>,
    /// There were more than `FIELDS_MAX`.
    more: bool,
}

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;

        impl<'de> Visitor<'de> for Walk {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Entries {
                    list: Vec::with_capacity(8),
                    more: false,
                };
                while let Some(Name(name)) = map.next_key()? {
                    if entries.list.len() == FIELDS_MAX {
                        entries.more = true;
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let raw: &'de RawValue = map.next_value()?;
                    entries.list.push((name, Value(raw.get())));
                }
                Ok(entries)
            }
        }

        deserializer.deserialize_map(Walk)
    }
}

struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;

        impl<'de> Visitor<'de> for Take {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Take)
    }
}
