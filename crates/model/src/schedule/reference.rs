//! The slow reference, for tests: no bit sets, no search, no calendar of our own. It walks time step by
//! step, lets jiff say what the clock on the wall shows, and checks of every moment whether it is a slot.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::{DstGap, DstOverlap};
use crate::hash::hash;

/// One expression of six fields (seconds first), as lists of numbers and predicates on dates.
pub(super) struct Reference {
    second: Vec<i64>,
    minute: Vec<i64>,
    hour: Vec<i64>,
    day: String,
    month: Vec<i64>,
    weekday: String,
    elapsed: bool,
    gap: DstGap,
    overlap: DstOverlap,
}

/// What the clock on the wall shows at each step of a stretch of time.
pub(super) struct Stretch {
    pub(super) first: i64,
    pub(super) step: i64,
    shown: Vec<DateTime>,
    /// For each step: whether the same time was shown before.
    repeated: Vec<bool>,
}

pub(super) fn time_zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn shown_at(zone: &TimeZone, moment: i64) -> DateTime {
    zone.to_datetime(jiff::Timestamp::from_second(moment).unwrap())
}

impl Stretch {
    pub(super) fn new(zone: &TimeZone, first: i64, last: i64, step: i64) -> Self {
        let moments = || (first..=last).step_by(step as usize);
        let shown: Vec<DateTime> = moments().map(|moment| shown_at(zone, moment)).collect();
        // Clocks have gone back by 20 minutes to 7 hours, always in whole minutes.
        let settled = shown_at(zone, first - 8 * 3_600)
            .duration_until(shown[0])
            .as_secs()
            == 8 * 3_600
            && shown[0].duration_until(shown[shown.len() - 1]).as_secs()
                == (shown.len() as i64 - 1) * step;
        let was_shown = |moment: i64, now: DateTime| {
            let since = |back: i64| shown_at(zone, moment - back).duration_until(now).as_secs();
            // Nothing was repeated if the clock ran evenly; else every ten minutes are looked at.
            since(8 * 3_600) < 8 * 3_600 && (1..=48).any(|tens| since(tens * 600) == 0)
        };
        let repeated = moments()
            .zip(&shown)
            .map(|(at, now)| !settled && was_shown(at, *now));
        let repeated = repeated.collect();
        Self {
            first,
            step,
            shown,
            repeated,
        }
    }
}

impl Reference {
    pub(super) fn read(text: &str, gap: DstGap, overlap: DstOverlap) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let [second, minute, hour, day, month, weekday] = fields[..] else {
            panic!("six fields")
        };
        Self {
            second: list(second, 0, 59),
            minute: list(minute, 0, 59),
            hour: list(hour, 0, 23),
            day: day.to_owned(),
            month: list(month, 1, 12),
            weekday: weekday.to_owned(),
            elapsed: minute.starts_with('*') || hour.starts_with('*'),
            gap,
            overlap,
        }
    }

    /// The slots among the steps of a stretch, but for the first step, which only says what was before.
    pub(super) fn slots(&self, stretch: &Stretch) -> Vec<i64> {
        let mut slots = Vec::new();
        for (index, pair) in stretch.shown.windows(2).enumerate() {
            let [before, now] = pair else { continue };
            let mut due = self.matches(*now);
            if !self.elapsed {
                if self.overlap == DstOverlap::First && stretch.repeated[index + 1] {
                    due = false;
                }
                if self.gap == DstGap::RunAfter {
                    due |= self.left_out(*before, *now, stretch.step);
                }
            }
            if due {
                slots.push(stretch.first + stretch.step * (index as i64 + 1));
            }
        }
        slots
    }

    /// Whether a matching time lies between two neighbouring steps, which only a gap makes possible.
    fn left_out(&self, before: DateTime, now: DateTime, step: i64) -> bool {
        let ahead = before.duration_until(now).as_secs();
        let mut times =
            (1..ahead / step).map(|n| before + jiff::SignedDuration::from_secs(n * step));
        ahead > step && times.any(|time| self.matches(time))
    }

    fn matches(&self, time: DateTime) -> bool {
        self.minute.contains(&i64::from(time.minute()))
            && self.hour.contains(&i64::from(time.hour()))
            && self.second.contains(&i64::from(time.second()))
            && self.month.contains(&i64::from(time.month()))
            && self.matches_day(time.date())
    }

    fn matches_day(&self, date: Date) -> bool {
        let weekday = self.weekday.trim_start_matches('+');
        let by_day = || self.day.split(',').any(|item| is_day(item, date));
        let by_weekday = || weekday.split(',').any(|item| is_weekday(item, date));
        match (self.day.as_str(), weekday) {
            ("*" | "?", "*" | "?") => true,
            ("*" | "?", _) => by_weekday(),
            (_, "*" | "?") => by_day(),
            (_, _) if self.weekday.starts_with('+') => by_day() && by_weekday(),
            (_, _) => by_day() || by_weekday(),
        }
    }
}

fn is_day(item: &str, date: Date) -> bool {
    let last = date.last_of_month();
    let nearest = |to: Date| match to.weekday() {
        Weekday::Saturday if to.day() == 1 => to.tomorrow().unwrap().tomorrow().unwrap(),
        Weekday::Saturday => to.yesterday().unwrap(),
        Weekday::Sunday if to == last => to.yesterday().unwrap().yesterday().unwrap(),
        Weekday::Sunday => to.tomorrow().unwrap(),
        Weekday::Monday
        | Weekday::Tuesday
        | Weekday::Wednesday
        | Weekday::Thursday
        | Weekday::Friday => to,
    };
    if item == "L" {
        date == last
    } else if item == "LW" {
        date == nearest(last)
    } else if let Some(back) = item.strip_prefix("L-") {
        last.day() - back.parse::<i8>().unwrap() == date.day()
    } else if let Some(day) = item.strip_suffix('W') {
        let day: i8 = day.parse().unwrap();
        day <= last.day() && date == nearest(Date::new(date.year(), date.month(), day).unwrap())
    } else {
        list(item, 1, 31).contains(&i64::from(date.day()))
    }
}

fn is_weekday(item: &str, date: Date) -> bool {
    let shown = i64::from(date.weekday().to_sunday_zero_offset());
    if let Some((day, which)) = item.split_once('#') {
        let nth = if which == "L" {
            -1
        } else {
            which.parse::<i8>().unwrap()
        };
        let weekday = Weekday::from_sunday_zero_offset(day.parse::<i8>().unwrap() % 7).unwrap();
        date.nth_weekday_of_month(nth, weekday)
            .is_ok_and(|nth| nth == date)
    } else if let Some(day) = item.strip_suffix('L') {
        is_weekday(&format!("{day}#L"), date)
    } else {
        // A range that ends on the seventh day walks up to 7; any other goes around at 6.
        let base = item.split('/').next().unwrap();
        let list = list(item, 0, if base.ends_with('7') { 7 } else { 6 });
        list.iter().any(|number| number % 7 == shown)
    }
}

/// The numbers of a list, by walking each range one number at a time.
fn list(text: &str, lowest: i64, highest: i64) -> Vec<i64> {
    let mut all = Vec::new();
    for item in text.split(',') {
        let (base, step) = item.split_once('/').unwrap_or((item, "1"));
        let number = |text: &str| text.parse::<i64>().unwrap();
        let (mut from, to) = match base.split_once('-') {
            _ if base == "*" => (lowest, highest),
            Some((from, to)) => (number(from), number(to)),
            None if item.contains('/') => (number(base), highest),
            None => (number(base), number(base)),
        };
        let mut walked = vec![from];
        while from != to {
            from = if from == highest { lowest } else { from + 1 };
            walked.push(from);
        }
        all.extend(walked.into_iter().step_by(step.parse().unwrap()));
    }
    all
}

/// Chance that is the same in every run.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        hash(7, &[self.0]) % bound
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}
