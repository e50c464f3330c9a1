//! One cron expression: macros put into fields, fields counted and handed to their readers.

use super::ScheduleError;
use super::cron::Dialect;
use super::days::Days;
use super::field::{Field, Reader};
use super::rule::Rule;

/// Reads one expression, which may be a macro.
pub(super) fn read(text: &str, dialect: Dialect, hash: u64) -> Result<Rule, ScheduleError> {
    if text.starts_with('@') {
        return read_fields(
            &Fields::split(expand(text)?, Dialect::Unix)?,
            Dialect::Unix,
            hash,
        );
    }
    let fields = Fields::split(text, dialect)?;
    read_fields(&fields, dialect, hash).map_err(|problem| {
        match fields
            .with_year_last()
            .map(|fields| read_fields(&fields, dialect, hash))
        {
            Some(Ok(_)) => ScheduleError::SixthField {
                text: text.to_owned(),
                problem: Box::new(problem),
            },
            Some(Err(_)) | None => problem,
        }
    })
}

fn expand(text: &str) -> Result<&'static str, ScheduleError> {
    const MACROS: [(&str, &str); 8] = [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@minutely", "* * * * *"),
    ];
    let known = MACROS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(_, fields)| *fields).ok_or_else(|| {
        let first = text.split_ascii_whitespace().next().unwrap_or(text);
        if first.eq_ignore_ascii_case("@every") {
            ScheduleError::EveryInCron
        } else if first.eq_ignore_ascii_case("@reboot") {
            ScheduleError::Reboot
        } else {
            ScheduleError::Macro {
                text: text.to_owned(),
            }
        }
    })
}

fn read_fields(fields: &Fields<'_>, dialect: Dialect, hash: u64) -> Result<Rule, ScheduleError> {
    let reader = |field| Reader {
        field,
        dialect,
        hash,
    };
    if dialect == Dialect::Quartz && (fields.day == "?") == (fields.weekday == "?") {
        return Err(ScheduleError::QuartzQuestion);
    }
    let seconds = reader(Field::Second).set(fields.second)?;
    let minutes = reader(Field::Minute).set(fields.minute)?;
    let hours = reader(Field::Hour).set(fields.hour)? as u32;
    let mut days = Days::default();
    reader(Field::Day).dates(fields.day, &mut days)?;
    let months = reader(Field::Month).set(fields.month)? as u32;
    reader(Field::Weekday).weekdays(fields.weekday, &mut days)?;
    let years = reader(Field::Year).years(fields.year)?;
    let elapsed = fields.minute.starts_with('*') || fields.hour.starts_with('*');
    Ok(Rule {
        seconds,
        minutes,
        hours,
        days,
        months,
        years,
        elapsed,
    })
}

/// The seven fields of an expression, those left out filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields<'a> {
    pub(super) count: usize,
    pub(super) second: &'a str,
    pub(super) minute: &'a str,
    pub(super) hour: &'a str,
    pub(super) day: &'a str,
    pub(super) month: &'a str,
    pub(super) weekday: &'a str,
    pub(super) year: &'a str,
}

impl<'a> Fields<'a> {
    /// Splits an expression that is no macro; five fields lack seconds and year, six the year.
    pub(super) fn split(text: &'a str, dialect: Dialect) -> Result<Self, ScheduleError> {
        let mut words = [""; 7];
        let mut count = 0;
        for word in text.split_ascii_whitespace() {
            if let Some(place) = words.get_mut(count) {
                *place = word;
            }
            count += 1;
        }
        let [a, b, c, d, e, f, g] = words;
        let (second, minute, hour, day, month, weekday, year) = match (count, dialect) {
            (0, _) => return Err(ScheduleError::Empty),
            (5, Dialect::Unix) => ("0", a, b, c, d, e, "*"),
            (6, _) => (a, b, c, d, e, f, "*"),
            (7, _) => (a, b, c, d, e, f, g),
            (_, Dialect::Unix) => return Err(ScheduleError::FieldCount { count }),
            (_, Dialect::Quartz) => return Err(ScheduleError::QuartzFieldCount { count }),
        };
        Ok(Self {
            count,
            second,
            minute,
            hour,
            day,
            month,
            weekday,
            year,
        })
    }

    /// Six fields as someone meant them who put a year last and no seconds first.
    fn with_year_last(&self) -> Option<Self> {
        let Self {
            count: 6,
            second: a,
            minute: b,
            hour: c,
            day: d,
            month: e,
            weekday: f,
            ..
        } = *self
        else {
            return None;
        };
        Some(Self {
            count: 7,
            second: "0",
            minute: a,
            hour: b,
            day: c,
            month: d,
            weekday: e,
            year: f,
        })
    }
}
