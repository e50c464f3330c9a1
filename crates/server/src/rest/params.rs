//! Query parameters. Each refusal names its parameter.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use model::Timestamp;

use super::extract::shown;
use crate::api::Api;
use crate::ops::Mode;
use crate::problem::{Kind, Problem};

/// A request that has no use for parameters: whoever sends one means something else.
pub(super) struct NoParams;

impl FromRequestParts<Arc<Api>> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let params = Params::from_request_parts(parts, api).await?;
        params.known(&[])?;
        Ok(Self)
    }
}

/// A request that may ask for a rehearsal, with `dry_run`.
pub(super) struct DryRun(pub Mode);

impl FromRequestParts<Arc<Api>> for DryRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let params = Params::from_request_parts(parts, api).await?;
        params.known(&["dry_run"])?;
        let dry = params.switch("dry_run")?;
        Ok(Self(if dry { Mode::Dry } else { Mode::Write }))
    }
}

/// Query parameters, each known to its reader.
pub(super) struct Params(Vec<(String, String)>);

impl FromRequestParts<Arc<Api>> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, api).await;
        query.map(|Query(list)| Self(list)).map_err(|error| {
            Problem::new(
                Kind::ParameterInvalid,
                format!("the query cannot be read: {error}"),
            )
        })
    }
}

impl Params {
    /// Refuses a parameter that nobody knows.
    pub(super) fn known(&self, known: &[&str]) -> Result<(), Problem> {
        match self
            .0
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            None => Ok(()),
            Some((name, _)) => {
                let name = shown(name);
                let list = match known {
                    [] => "there are none here".to_owned(),
                    known => format!("known are {}", known.join(", ")),
                };
                let detail = format!("{name:?} is not a known parameter: {list}");
                Err(Problem::new(Kind::ParameterInvalid, detail).at(name))
            }
        }
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// True or false; false if it is not given. One without a value is refused: nobody may guess what was meant.
    pub(super) fn switch(&self, name: &'static str) -> Result<bool, Problem> {
        let given: Vec<&str> = self.all(name).collect();
        match given.as_slice() {
            [] | ["false"] => Ok(false),
            ["true"] => Ok(true),
            _ => Err(refuse(name, format!("{name} is true or false, once"))),
        }
    }

    /// A parameter that may stand once.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            None => Ok(first.filter(|value| !value.is_empty())),
            Some(_) => Err(refuse(name, format!("{name} is given twice"))),
        }
    }

    /// A text of at most so many bytes.
    pub(super) fn text(&self, name: &'static str, max: usize) -> Result<Option<&str>, Problem> {
        let text = self.one(name)?;
        if text.is_some_and(|text| text.len() > max) {
            return Err(refuse(name, format!("{name} has at most {max} bytes")));
        }
        Ok(text)
    }

    /// One of `known`, or what it is unless it is said.
    pub(super) fn choice<T>(
        &self,
        name: &'static str,
        known: &[&str],
        parse: fn(&str) -> Option<T>,
        unless: T,
    ) -> Result<T, Problem> {
        let Some(text) = self.one(name)? else {
            return Ok(unless);
        };
        parse(text).ok_or_else(|| {
            let (text, known) = (shown(text), known.join(", "));
            refuse(
                name,
                format!("{text:?} is not a {name}: write one of {known}"),
            )
        })
    }

    /// One or several of `known`, separated by commas: of what they are said.
    pub(super) fn words<T>(
        &self,
        name: &'static str,
        of: &str,
        known: &[&str],
        parse: fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, Problem> {
        let words: Vec<&str> = self.all(name).flat_map(|list| list.split(',')).collect();
        if words.len() > known.len() {
            let (count, most) = (words.len(), known.len());
            let detail = format!("{count} words: {name} has at most {most}, each once");
            return Err(refuse(name, detail));
        }
        let read = |word: &&str| {
            parse(word).ok_or_else(|| {
                let known = known.join(", ");
                let detail = format!("{:?} is not a {name} of a {of}: {known}", shown(word));
                refuse(name, detail)
            })
        };
        words.iter().map(read).collect()
    }

    /// A moment: RFC 3339, or epoch seconds or milliseconds.
    pub(super) fn moment(&self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        let read = |text: &str| match text.parse() {
            Ok(number) => Timestamp::from_number(number),
            // An offset's plus, sent as it is, arrives as a space.
            Err(_) => Timestamp::parse(&text.replace(' ', "+")),
        };
        let moment = self.one(name)?.map(read).transpose();
        moment.map_err(|error| refuse(name, error.to_string()))
    }
}

/// A parameter that cannot be used.
pub(super) fn refuse(name: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(Kind::ParameterInvalid, detail).at(name)
}
