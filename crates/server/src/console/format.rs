//! How moments, spans and states are written on pages.

use std::fmt::Write as _;

use askama::Template;
use askama::filters::HtmlSafe;
use model::schedule::{Local, Zone};
use model::{JobState, Reason, RunState, Timestamp};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// Between a number and its unit.
const THIN: char = '\u{2009}';

/// A text as a part of a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The viewer's clock.
pub(super) struct Face<'a> {
    pub zone: &'a Zone,
    pub now: Timestamp,
}

/// A moment: how far away, and what the clock shows then.
#[derive(Template, Clone)]
#[template(
    ext = "html",
    source = r#"<time class="when" datetime="{{ iso }}" title="{{ title }}" tabindex="0" data-rel><span>{{ relative }}</span><small>{{ absolute }}</small></time>"#
)]
pub(super) struct When {
    pub iso: String,
    pub relative: String,
    pub absolute: String,
    pub title: String,
}

impl HtmlSafe for When {}

fn weekday(local: &Local) -> &'static str {
    DAYS.get(usize::from(local.weekday)).copied().unwrap_or("")
}

fn month(local: &Local) -> &'static str {
    let index = usize::from(local.month).saturating_sub(1);
    MONTHS.get(index).copied().unwrap_or("")
}

impl Face<'_> {
    pub(super) fn local(&self, at: Timestamp) -> Local {
        self.zone.local(at)
    }

    /// `Tue 24 Mar`.
    pub(super) fn day(&self, at: Timestamp) -> String {
        let local = self.local(at);
        format!("{} {} {}", weekday(&local), local.day, month(&local))
    }

    /// `13:45:00`.
    pub(super) fn clock(&self, at: Timestamp) -> String {
        let local = self.local(at);
        format!("{:02}:{:02}:{:02}", local.hour, local.minute, local.second)
    }

    /// `13:45:00.120`.
    pub(super) fn precise(&self, at: Timestamp) -> String {
        format!("{}.{:03}", self.clock(at), self.local(at).millis)
    }

    /// The day is named unless it is today; the year unless it is this one.
    pub(super) fn absolute(&self, at: Timestamp) -> String {
        let (then, now) = (self.local(at), self.local(self.now));
        let clock = self.clock(at);
        if (then.year, then.month, then.day) == (now.year, now.month, now.day) {
            return clock;
        }
        let day = self.day(at);
        if then.year == now.year {
            format!("{day} {clock}")
        } else {
            format!("{day} {} {clock}", then.year)
        }
    }

    pub(super) fn when(&self, at: Timestamp) -> When {
        let zone = self.zone.name();
        When {
            iso: at.to_string(),
            relative: relative(self.now, at),
            absolute: self.absolute(at),
            title: format!("{} {} {zone} · {at}", self.day(at), self.precise(at)),
        }
    }

    /// `London, +01:00`.
    pub(super) fn zone_name(&self) -> String {
        let minutes = self.local(self.now).offset_minutes;
        let sign = if minutes < 0 { '−' } else { '+' };
        let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
        let name = self.zone.name();
        let city = name.rsplit('/').next().unwrap_or(name).replace('_', " ");
        format!("{city}, {sign}{hours:02}:{rest:02}")
    }
}

/// `in 12 m 53 s`, `3 d 4 h ago`.
pub(super) fn relative(now: Timestamp, at: Timestamp) -> String {
    let millis = at.as_millis().saturating_sub(now.as_millis());
    let secs = millis.unsigned_abs() / 1_000;
    if secs == 0 {
        return "now".to_owned();
    }
    let text = coarse(secs);
    if millis > 0 {
        format!("in {text}")
    } else {
        format!("{text} ago")
    }
}

/// Two units at most.
fn coarse(secs: u64) -> String {
    let (days, hours, minutes) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{secs}{THIN}s"),
        (0, 0, _) => format!("{minutes}{THIN}m {:02}{THIN}s", secs % 60),
        (0, _, _) => format!("{hours}{THIN}h {minutes:02}{THIN}m"),
        (1..=59, _, _) => format!("{days}{THIN}d {hours:02}{THIN}h"),
        _ => format!("{days}{THIN}d"),
    }
}

/// A duration, in three digits: `0.36 s`, `2 m 07 s`, `12 ms`.
pub(super) fn span(millis: i64) -> String {
    let sign = if millis < 0 { "−" } else { "" };
    let millis = millis.unsigned_abs();
    let text = match millis {
        0 => return format!("0{THIN}ms"),
        1..=999 => format!("{millis}{THIN}ms"),
        1_000..=9_999 => format!("{}.{:02}{THIN}s", millis / 1_000, millis % 1_000 / 10),
        10_000..=59_999 => format!("{}.{}{THIN}s", millis / 1_000, millis % 1_000 / 100),
        60_000.. => coarse(millis / 1_000),
    };
    format!("{sign}{text}")
}

/// `1,204,331`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A state as it is shown: its shape and colour, and its word.
#[derive(Template, Clone, PartialEq, Debug)]
#[template(
    ext = "html",
    source = r##"<span class="st {{ class }}"><svg class="glyph" aria-hidden="true"><use href="#g-{{ glyph }}"/></svg>{{ word }}</span>"##
)]
pub(super) struct State {
    pub class: &'static str,
    pub glyph: &'static str,
    pub word: String,
}

impl HtmlSafe for State {}

/// The same, in the head of a page.
#[derive(Template)]
#[template(
    ext = "html",
    source = r##"<span class="pill {{ state.class }}"><svg class="glyph" aria-hidden="true"><use href="#g-{{ state.glyph }}"/></svg>{{ state.word }}</span>"##
)]
pub(super) struct Pill {
    state: State,
}

impl HtmlSafe for Pill {}

impl State {
    pub(super) fn new(class: &'static str, word: impl Into<String>) -> Self {
        Self {
            class,
            glyph: class,
            word: word.into(),
        }
    }

    pub(super) fn pill(&self) -> Pill {
        Pill {
            state: self.clone(),
        }
    }

    pub(super) fn of_job(state: JobState) -> Self {
        match state {
            JobState::Active => Self::new("ran", "Active"),
            JobState::Paused => Self {
                class: "skipped",
                glyph: "paused",
                word: "Paused".to_owned(),
            },
            JobState::Finished => Self::new("planned", "Finished"),
            JobState::Invalid => Self::new("dead", "Invalid"),
            JobState::Deleted => Self::new("skipped", "Deleted"),
        }
    }

    pub(super) fn of_run(run: &model::Run) -> Self {
        if let Some(wait) = run.wait.filter(|_| run.state.is_live()) {
            let reason = words(wait.reason.as_str());
            return Self::new("planned", format!("Waiting: {reason}"));
        }
        let reason = run.reason.map(Reason::as_str).map(words);
        let because = |word: &str| match &reason {
            Some(reason) => format!("{word}: {reason}"),
            None => word.to_owned(),
        };
        match run.state {
            RunState::Ready => Self::new("planned", "Ready"),
            RunState::Running => Self::new("running", "Running"),
            RunState::Retrying => Self::new("retried", "Retrying"),
            RunState::Succeeded if run.attempts.len() > 1 => Self::new("retried", "Retried, ran"),
            RunState::Succeeded if run.late_by().is_some() => Self::new("late", "Late, ran"),
            RunState::Succeeded => Self::new("ran", "Ran"),
            RunState::Dead => Self::new("dead", because("Dead")),
            RunState::Cancelled => Self::new("skipped", because("Cancelled")),
            RunState::Skipped if run.reason == Some(Reason::Missed) => {
                Self::new("missed", "Missed")
            }
            RunState::Skipped => Self::new("skipped", because("Skipped")),
        }
    }
}

/// A word of ours as people write it.
pub(super) fn words(word: &str) -> String {
    word.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn moments_are_relative_first_and_name_the_day_when_it_is_another() {
        let zone = Zone::get("Europe/Berlin").unwrap();
        let now = Timestamp::parse("2026-03-24T12:32:07Z").unwrap();
        let face = Face { zone: &zone, now };
        let when = |text: &str| {
            let when = face.when(Timestamp::parse(text).unwrap());
            (when.relative.replace(THIN, " "), when.absolute)
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            when("2026-03-24T12:45:00Z"),
            pair("in 12 m 53 s", "13:45:00")
        );
        assert_eq!(
            when("2026-03-23T12:32:06Z"),
            pair("1 d 00 h ago", "Mon 23 Mar 13:32:06")
        );
        assert_eq!(when("2027-01-01T00:00:00Z").1, "Fri 1 Jan 2027 01:00:00");
        assert_eq!(when("2026-03-24T12:32:07Z").0, "now");
        assert_eq!(face.zone_name(), "Berlin, +01:00");
    }

    #[test]
    fn spans_and_counts_have_units_and_separators() {
        let text = |millis| span(millis).replace(THIN, " ");
        let spans = [0, 12, 360, 1_204, 41_250, 127_000, 5_400_000].map(text);
        assert_eq!(
            spans,
            [
                "0 ms", "12 ms", "360 ms", "1.20 s", "41.2 s", "2 m 07 s", "1 h 30 m"
            ]
        );
        assert_eq!(text(-50), "−50 ms");
        assert_eq!(
            [0, 999, 1_000, 1_204_331].map(count),
            ["0", "999", "1,000", "1,204,331"]
        );
        assert_eq!(relative(at(0), at(500)), "now");
    }

    #[test]
    fn a_word_in_a_state_is_escaped() {
        let state = State::new("dead", "<script>");
        assert!(state.to_string().contains("&#60;script&#62;"), "{state}");
    }
}
