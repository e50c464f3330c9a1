//! A calendar as it is stored: its entries as the texts they were read from.

use std::borrow::Cow;

use model::schedule::{CalendarError, DateRange, Day, Weekly, Yearly, Zone};
use model::{Calendar, CalendarName, Timestamp, Version};
use serde::{Deserialize, Serialize};

use super::DocError;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CalendarDoc<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    note: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    zone: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dates: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    yearly: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weekly: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<String>,
}

/// The stored form of a calendar; its name, version and moment are columns.
pub fn encode_calendar(calendar: &Calendar) -> Result<Vec<u8>, DocError> {
    let doc = CalendarDoc {
        note: calendar.note.as_deref().map(Cow::Borrowed),
        zone: calendar
            .zone
            .as_ref()
            .map(|zone| Cow::Borrowed(zone.name())),
        dates: calendar.dates.iter().map(ToString::to_string).collect(),
        yearly: calendar.yearly.iter().map(ToString::to_string).collect(),
        weekly: calendar.weekly.iter().map(ToString::to_string).collect(),
        ranges: calendar.ranges.iter().map(ToString::to_string).collect(),
    };
    Ok(serde_json::to_vec(&doc)?)
}

pub fn decode_calendar(
    name: CalendarName,
    version: Version,
    updated_at: Timestamp,
    bytes: &[u8],
) -> Result<Calendar, DocError> {
    let doc: CalendarDoc<'_> = serde_json::from_slice(bytes)?;
    let zone = doc.zone.as_deref().map(Zone::get).transpose();
    Ok(Calendar {
        note: doc.note.map(Cow::into_owned),
        zone: zone.map_err(|error| DocError(error.to_string()))?,
        dates: entries(&doc.dates, Day::parse)?,
        yearly: entries(&doc.yearly, Yearly::parse)?,
        weekly: entries(&doc.weekly, Weekly::parse)?,
        ranges: entries(&doc.ranges, DateRange::parse)?,
        version,
        ..Calendar::new(name, updated_at)
    })
}

fn entries<T>(
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, CalendarError>,
) -> Result<Vec<T>, DocError> {
    let read = texts.iter().map(|text| parse(text));
    read.collect::<Result<_, _>>()
        .map_err(|error| DocError(error.to_string()))
}
