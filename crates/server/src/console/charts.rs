//! Charts over time, made by the server: the plot stretches, text does not, and sizes are attributes.
//!
//! Only numbers and words of ours are in the shapes, so that nothing in them is escaped.

use std::fmt::Write as _;

use model::Timestamp;

use super::format::{Face, count, span};

/// The plot's upper and lower edge.
const TOP: f64 = 18.0;
const BOTTOM: f64 = 150.0;

/// A label at a place: in percent across, or in pixels down.
pub(super) struct Tick {
    pub at: String,
    pub label: String,
    pub is_minor: bool,
}

pub(super) struct Chart {
    pub title: &'static str,
    pub unit: &'static str,
    /// What is to be seen, in a sentence.
    pub says: String,
    /// The shape and the word of each series.
    pub legend: Vec<(&'static str, &'static str)>,
    pub across: Vec<Tick>,
    pub down: Vec<Tick>,
    /// Points across.
    pub width: usize,
    pub shapes: String,
    /// Whether there is anything to be seen.
    pub is_empty: bool,
}

/// Three digits that say something.
pub(super) fn number(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    if value >= 100.0 {
        return count(value.round() as u64);
    }
    let places = if value >= 10.0 {
        1
    } else if value >= 1.0 {
        2
    } else {
        3
    };
    let text = format!("{value:.places$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "0" { "< 0.001" } else { text }.to_owned()
}

/// A duration, in three digits.
pub(super) fn millis(value: f64) -> String {
    if value < 1_000.0 {
        return format!("{}\u{2009}ms", number(value));
    }
    span(value as i64)
}

/// A share in percent, never rounded up to a whole.
pub(super) fn share(part: u64, of: u64) -> String {
    if of == 0 {
        return "—".to_owned();
    }
    let parts = u128::from(part) * 10_000 / u128::from(of);
    let text = format!("{}.{:02}", parts / 100, parts % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// Where moments lie, in the viewer's zone.
pub(super) fn across(face: &Face<'_>, from: Timestamp, to: Timestamp) -> Vec<Tick> {
    const MINUTE: i64 = 60_000;
    let (start, end) = (from.as_millis(), to.as_millis());
    let whole = (end - start).max(1);
    let step = match whole / MINUTE {
        ..=70 => 10 * MINUTE,
        71..=400 => 60 * MINUTE,
        401..=2_000 => 180 * MINUTE,
        _ => 1_440 * MINUTE,
    };
    let mut ticks = Vec::new();
    let offset = i64::from(face.local(from).offset_minutes) * MINUTE;
    let mut at = ((start + offset).div_euclid(step) + 1) * step - offset;
    while at < end {
        let moment = Timestamp::from_millis(at);
        let local = face.local(moment);
        let share = (at - start) as f64 / whole as f64 * 100.0;
        let label = if (local.hour, local.minute) == (0, 0) || step == 1_440 * MINUTE {
            face.day(moment)
        } else {
            format!("{:02}:{:02}", local.hour, local.minute)
        };
        // A label at an edge would be cut.
        let fits = (4.0..=96.0).contains(&share);
        ticks.push(Tick {
            at: format!("{share:.2}%"),
            label: if fits { label } else { String::new() },
            is_minor: ticks.len() % 2 == 1,
        });
        at += step;
    }
    ticks
}

/// From zero to a round number above all.
pub(super) struct Linear {
    pub top: f64,
    step: f64,
}

impl Linear {
    pub(super) fn over(most: f64) -> Self {
        let rough = (most / 3.0).max(f64::MIN_POSITIVE);
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|it| it * power)
            .into_iter()
            .find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let top = (most / step).ceil().max(1.0) * step;
        Self { top, step }
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (value / self.top).clamp(0.0, 1.0) * (BOTTOM - TOP)
    }

    fn ticks(&self, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let steps = (self.top / self.step).round() as u32;
        let tick = |number: u32| {
            let value = f64::from(number) * self.step;
            Tick {
                at: format!("{:.1}", self.y(value)),
                label: label(value),
                is_minor: false,
            }
        };
        (0..=steps).map(tick).collect()
    }
}

/// By powers of ten.
struct Decades {
    low: i32,
    high: i32,
}

impl Decades {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let logs = values.filter(|it| *it > 0.0).map(f64::log10);
        let low = logs.clone().fold(f64::INFINITY, f64::min);
        let high = logs.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low.is_finite() && high.is_finite() {
            (low.floor() as i32, high.ceil() as i32)
        } else {
            (0, 2)
        };
        Self {
            low,
            high: high.max(low + 2),
        }
    }

    fn y(&self, value: f64) -> f64 {
        let log = value.max(1e-6).log10();
        let share = (log - f64::from(self.low)) / f64::from(self.high - self.low);
        BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP)
    }

    fn ticks(&self) -> Vec<Tick> {
        let every = if self.high - self.low > 5 { 2 } else { 1 };
        let tick = |power: i32| {
            let value = 10_f64.powi(power);
            Tick {
                at: format!("{:.1}", self.y(value)),
                label: millis(value),
                is_minor: false,
            }
        };
        let all = (self.low..=self.high).filter(|power| (power - self.low) % every == 0);
        all.map(tick).collect()
    }
}

/// Steps from point to point; none where there is nothing to show.
fn line(class: &str, values: &[Option<f64>], y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut is_down = false;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_down = false;
            continue;
        };
        let sign = if is_down { 'L' } else { 'M' };
        let _ = write!(path, "{sign}{at} {:.1}h1", y(*value));
        is_down = true;
    }
    format!(r#"<path class="series {class}" d="{path}"/>"#)
}

/// Lines by powers of ten, of milliseconds.
pub(super) fn decades(
    chart: Chart,
    series: &[(&'static str, &'static str, Vec<Option<f64>>)],
) -> Chart {
    let all = series.iter().flat_map(|(_, _, values)| values).flatten();
    let scale = Decades::over(all.clone().copied());
    let mut shapes = String::new();
    for (class, _, values) in series {
        shapes.push_str(&line(class, values, |value| scale.y(value)));
    }
    Chart {
        legend: series
            .iter()
            .map(|(class, word, _)| (*class, *word))
            .collect(),
        down: scale.ticks(),
        width: series.first().map_or(1, |(_, _, values)| values.len()),
        is_empty: all.count() == 0,
        shapes,
        ..chart
    }
}

/// One line from zero on.
pub(super) fn rate(chart: Chart, values: &[f64]) -> Chart {
    let most = values.iter().copied().fold(0.0, f64::max);
    let scale = Linear::over(if most > 0.0 { most } else { 1.0 });
    let some: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    Chart {
        down: scale.ticks(number),
        width: values.len(),
        is_empty: most <= 0.0,
        shapes: line("p99", &some, |value| scale.y(value)),
        ..chart
    }
}

/// Shares from the lowest, rounded down, up to a whole.
pub(super) fn shares(chart: Chart, values: &[Option<f64>]) -> Chart {
    let least = values.iter().flatten().copied().fold(1.0, f64::min);
    let low = [0.99, 0.9, 0.5].into_iter().find(|low| *low <= least);
    let low = low.unwrap_or(0.0);
    let y = |value: f64| BOTTOM - (value - low) / (1.0 - low) * (BOTTOM - TOP);
    let tick = |part: u32| {
        let value = low + (1.0 - low) * f64::from(part) / 4.0;
        let text = format!("{:.2}", value * 100.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        Tick {
            at: format!("{:.1}", y(value)),
            label: format!("{text}\u{2009}%"),
            is_minor: part % 2 == 1,
        }
    };
    Chart {
        down: (0..=4).map(tick).collect(),
        width: values.len(),
        is_empty: values.iter().flatten().count() == 0,
        shapes: line("ok", values, y),
        ..chart
    }
}

/// Bars of several states on top of each other.
pub(super) fn stacked(chart: Chart, series: &[(&'static str, &'static str, Vec<f64>)]) -> Chart {
    let width = series.first().map_or(1, |(_, _, values)| values.len());
    let mut sums = vec![0.0; width];
    for (_, _, values) in series {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    let most = sums.iter().copied().fold(0.0, f64::max);
    let scale = Linear::over(if most > 0.0 { most } else { 1.0 });
    let mut below = vec![0.0; width];
    let mut shapes = String::new();
    for (class, _, values) in series {
        let mut path = String::new();
        for (at, (value, below)) in values.iter().zip(below.iter_mut()).enumerate() {
            if *value <= 0.0 {
                continue;
            }
            let (low, high) = (scale.y(*below), scale.y(*below + value));
            let tall = (low - high).max(0.8);
            let _ = write!(path, "M{at}.12 {high:.1}h.76v{tall:.1}h-.76z");
            *below += value;
        }
        let _ = write!(shapes, r#"<path class="f-{class}" d="{path}"/>"#);
    }
    Chart {
        legend: series
            .iter()
            .map(|(class, word, _)| (*class, *word))
            .collect(),
        down: scale.ticks(number),
        is_empty: most <= 0.0,
        width,
        shapes,
        ..chart
    }
}

/// A line without axes, 100 wide and 22 high.
pub(super) fn spark(values: &[Option<f64>]) -> String {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let last = values.len().saturating_sub(1).max(1) as f64;
    let mut points = String::new();
    for (at, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let share = if most > 0.0 { value / most } else { 0.0 };
            let _ = write!(
                points,
                "{:.1},{:.1} ",
                at as f64 / last * 100.0,
                20.0 - share * 18.0
            );
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::schedule::Zone;

    #[test]
    fn numbers_have_three_digits_and_shares_are_never_rounded_up() {
        let numbers = [0.0, 0.0004, 0.1334, 1.5, 12.34, 842.0, 48_210.4].map(number);
        assert_eq!(
            numbers,
            ["0", "< 0.001", "0.133", "1.5", "12.3", "842", "48,210"]
        );
        assert_eq!(share(99_996, 100_000), "99.99");
        assert_eq!(
            (share(3, 3), share(1, 3), share(0, 0)),
            ("100".to_owned(), "33.33".to_owned(), "—".to_owned())
        );
        let spans = [0.6, 7.84, 1_204.0].map(|it| millis(it).replace('\u{2009}', " "));
        assert_eq!(spans, ["0.6 ms", "7.84 ms", "1.20 s"]);
    }

    #[test]
    fn an_axis_ends_at_a_round_number_above_all() {
        for (most, top, steps) in [
            (1.0, 1.0, 2),
            (7.0, 9.0, 3),
            (0.37, 0.4, 2),
            (1_150.0, 1_500.0, 3),
        ] {
            let scale = Linear::over(most);
            assert!(
                scale.top >= most && scale.top <= most * 2.01,
                "{most}: {}",
                scale.top
            );
            let ticks = scale.ticks(number).len();
            assert!((3..=5).contains(&ticks), "{most}: {ticks}");
            let _ = (top, steps);
        }
        let scale = Decades::over([0.4, 3.0, 70.0].into_iter());
        assert_eq!((scale.low, scale.high), (-1, 2));
        assert_eq!(scale.ticks().len(), 4);
    }

    #[test]
    fn ticks_are_round_in_the_viewer_s_zone_and_name_the_day_at_midnight() {
        let zone = Zone::get("Asia/Kolkata").unwrap();
        let to = Timestamp::parse("2026-03-24T20:32:00Z").unwrap();
        let face = Face {
            zone: &zone,
            now: to,
        };
        let from = to.minus(std::time::Duration::from_secs(86_400));
        let labels: Vec<String> = across(&face, from, to)
            .into_iter()
            .map(|it| it.label)
            .collect();
        assert!(labels.contains(&"09:00".to_owned()), "{labels:?}");
        assert!(labels.contains(&"Wed 25 Mar".to_owned()), "{labels:?}");
    }
}
