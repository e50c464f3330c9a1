//! What counts as success, as it is stored.

use std::borrow::Cow;

use model::success::{JsonEquals, Statuses, Success};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::DocError;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuccessDoc<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    status: Option<Vec<Cow<'a, str>>>,
    /// The pointer, and the value that it equals.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    json: Option<(Cow<'a, str>, Cow<'a, RawValue>)>,
}

impl<'a> SuccessDoc<'a> {
    pub(super) fn of(rule: &'a Success) -> Result<Self, DocError> {
        let status = rule.status.as_ref().map(|statuses| {
            let ranges = statuses.ranges().iter();
            ranges.map(|range| Cow::Owned(range.to_string())).collect()
        });
        let json = rule.json.as_ref().map(|json| {
            let equals = RawValue::from_string(json.equals.clone())?;
            Ok::<_, DocError>((Cow::Borrowed(json.pointer.as_str()), Cow::Owned(equals)))
        });
        let json = json.transpose()?;
        Ok(Self { status, json })
    }

    pub(super) fn read(self) -> Result<Success, DocError> {
        let bad = |error: model::target::TargetError| DocError(error.to_string());
        let status = self
            .status
            .map(|texts| Statuses::new(texts.iter().map(Cow::as_ref)));
        let json = self.json;
        let json = json.map(|(pointer, equals)| JsonEquals::new(&pointer, equals.get().to_owned()));
        Ok(Success {
            status: status.transpose().map_err(bad)?,
            json: json.transpose().map_err(bad)?,
        })
    }
}
