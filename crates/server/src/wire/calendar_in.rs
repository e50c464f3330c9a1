//! A calendar as clients write it.

use model::schedule::{CalendarError, DateRange, Day, Weekly, Yearly};
use model::{CalendarName, limits};

use super::read::{self, Fields, Path, Read, Shape, Value};
use super::requests::note;
use super::schedule_in::zone;
use crate::ops::{CalendarDraft, Fault, FieldError};

pub const CALENDAR_FIELDS: [&str; 7] = [
    "name", "note", "timezone", "dates", "yearly", "weekly", "ranges",
];
pub const RANGE_FIELDS: [&str; 2] = ["from", "to"];
const RANGES: Path<'static> = Path {
    parent: "",
    name: "ranges",
};

/// Reads the whole of a calendar.
pub fn calendar_draft(body: &[u8]) -> Read<CalendarDraft> {
    let fields = read::document(body, &CALENDAR_FIELDS)?;
    let draft = CalendarDraft {
        name: fields.get("name", name)?,
        note: fields.get("note", note)?,
        zone: fields.get("timezone", zone)?,
        dates: list(&fields, "dates", "dates such as \"2026-12-25\"", Day::parse)?,
        yearly: list(
            &fields,
            "yearly",
            "days such as \"12-25\", month first",
            Yearly::parse,
        )?,
        weekly: list(
            &fields,
            "weekly",
            "parts of the week such as \"SAT-SUN\" or \"MON-FRI 09:00-17:00\"",
            Weekly::parse,
        )?,
        ranges: entries(&fields, "ranges", "a list of ranges", range)?,
    };
    let count = draft.dates.len() + draft.yearly.len() + draft.weekly.len() + draft.ranges.len();
    if count == 0 {
        let detail = "a calendar has at least one entry in dates, yearly, weekly or ranges";
        return Err(FieldError::new(Fault::Missing, "dates", detail));
    }
    if count > limits::CALENDAR_ENTRIES_MAX {
        let most = limits::CALENDAR_ENTRIES_MAX;
        let detail = format!("{count} entries: a calendar has at most {most}");
        return Err(Path::ROOT.invalid(detail));
    }
    Ok(draft)
}

/// A new calendar says how it is called.
pub fn name_of(draft: &CalendarDraft) -> Read<CalendarName> {
    draft.name.clone().ok_or_else(|| {
        let detail = "name is missing: a calendar is named by the jobs that go by it";
        FieldError::new(Fault::Missing, "name", detail)
    })
}

fn name(value: Value<'_>, path: Path<'_>) -> Read<CalendarName> {
    let text = value.text(path)?;
    CalendarName::new(&text).map_err(|error| path.invalid(error.to_string()))
}

fn entries<'a, T>(
    fields: &Fields<'a>,
    field: &str,
    what: &str,
    read: impl Fn(Value<'a>, Path<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let most = limits::CALENDAR_ENTRIES_MAX;
    let list = fields.get(field, |value, path| value.list(path, what, most, read))?;
    Ok(list.unwrap_or_default())
}

/// A list of texts.
fn list<T>(
    fields: &Fields<'_>,
    field: &str,
    what: &str,
    parse: impl Fn(&str) -> Result<T, CalendarError>,
) -> Read<Vec<T>> {
    entries(
        fields,
        field,
        &format!("a list of {what}"),
        |value, path| {
            let text = value.text_or(path, what)?;
            parse(&text).map_err(|error| path.invalid(error.to_string()))
        },
    )
}

/// `"2026-12-24/2027-01-02"`, or its ends in an object.
fn range(value: Value<'_>, path: Path<'_>) -> Read<DateRange> {
    let text = if value.shape() == Shape::Object {
        let fields = Fields::of(value, RANGES, "ranges", &RANGE_FIELDS)?;
        let end = |name: &str| {
            fields.get(name, Value::text)?.ok_or_else(|| {
                let detail = format!("{name} is missing: a range has from and to");
                FieldError::new(Fault::Missing, format!("ranges.{name}"), detail)
            })
        };
        format!("{}/{}", end("from")?, end("to")?)
    } else {
        let what = "a range such as \"2026-12-24/2027-01-02\", or {\"from\": …, \"to\": …}";
        value.text_or(path, what)?.into_owned()
    };
    DateRange::parse(&text).map_err(|error| path.invalid(error.to_string()))
}
