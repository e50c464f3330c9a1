//! The heat map: days down, the time of day across, one cell for each slot, or for each hour where there are more.
//!
//! Only numbers and words of ours are in the shapes, so that nothing in them is escaped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{Reason, Timestamp};

use super::format::{Face, State};
use super::heat_marks::Mark;
use crate::ops::slots::Fate;

const DAY: f64 = 1_440.0;
/// Pixels of a row, and of a cell within it.
const ROW: f64 = 20.0;
const CELL: f64 = 14.0;
const TOP: f64 = 3.0;
/// More slots in a day than this are shown by the hour.
const SLOTS_MAX: u64 = 100;

/// What needs a look: a cell that can be opened.
pub(super) struct Cell {
    pub at: String,
    pub says: String,
    pub shapes: String,
    /// Where it can be hit.
    pub x: String,
    pub y: String,
    pub width: String,
}

pub(super) struct Row {
    pub label: String,
    /// The moment at which the day begins.
    pub at: String,
    pub is_today: bool,
    pub label_y: String,
    /// `97.9 %`.
    pub share: String,
    /// What ran, and what is planned, each as one path.
    pub ran: String,
    pub planned: String,
    pub cells: Vec<Cell>,
}

pub(super) struct Grid {
    pub rows: Vec<Row>,
    /// Of the plot.
    pub height: String,
    /// With the axis above it.
    pub full: String,
}

pub(super) struct Heat {
    /// None where there are too many slots in a day.
    pub slots: Option<Grid>,
    pub hours: Grid,
    pub says: String,
    pub ran: u64,
    pub total: u64,
    /// Where now is, in percent of the day.
    pub now: String,
    pub ticks: Vec<(String, String)>,
}

/// What became of a slot, as it is shown.
pub(super) fn state_of(fate: &Fate) -> State {
    match fate {
        Fate::Ran(run) => State::of_run(run),
        Fate::Skipped(why) if why.reason == Reason::Missed => State::new("missed", "Missed"),
        Fate::Skipped(why) => {
            let reason = super::format::words(why.reason.as_str());
            State::new("skipped", format!("Skipped: {reason}"))
        }
        Fate::Planned { .. } => State::new("planned", "Planned"),
        Fate::Unknown => State::new("planned", "Not known"),
    }
}

/// From the one that needs a look most.
const WORST: [&str; 7] = [
    "dead", "missed", "skipped", "late", "retried", "running", "ran",
];

fn rank(class: &str) -> usize {
    WORST
        .iter()
        .position(|word| *word == class)
        .unwrap_or(WORST.len())
}

fn full(text: &mut String, x: f64, y: f64, (w, h): (f64, f64)) {
    let _ = write!(text, "M{x:.2} {y:.2}h{w:.2}v{h:.2}h-{w:.2}z");
}

/// The shape of a state: no two are alike, also without colours.
fn shape(class: &str, x: f64, y: f64, (w, h): (f64, f64)) -> String {
    let mut d = String::new();
    let (inset, third) = ((w * 0.06).min(2.0), h * 0.38);
    match class {
        "late" => format!(
            r#"<path class="f-late" d="M{x:.2} {:.2}h{w:.2}v-{h:.2}z"/>"#,
            y + h
        ),
        "retried" => {
            full(&mut d, x, y, (w, third));
            full(&mut d, x, y + h - third, (w, third));
            format!(r#"<path class="f-retried" d="{d}"/>"#)
        }
        "skipped" => format!(
            r#"<rect class="s-skipped" x="{:.2}" y="{:.2}" width="{:.2}" height="{:.2}"/>"#,
            x + inset,
            y + 0.8,
            (w - 2.0 * inset).max(0.1),
            h - 1.6
        ),
        "missed" => format!(
            r#"<path class="s-missed" d="M{0:.2} {1:.2}L{2:.2} {3:.2}M{2:.2} {1:.2}L{0:.2} {3:.2}"/>"#,
            x + inset,
            y + 1.0,
            x + w - inset,
            y + h - 1.0
        ),
        "dead" => {
            full(&mut d, x, y, (w, h));
            let (left, right) = (x + w * 0.25, x + w * 0.75);
            let (top, bottom) = (y + h * 0.3, y + h * 0.7);
            format!(
                r#"<path class="f-dead" d="{d}"/><path class="s-cut" d="M{left:.2} {top:.2}L{right:.2} {bottom:.2}M{right:.2} {top:.2}L{left:.2} {bottom:.2}"/>"#
            )
        }
        "running" => {
            full(&mut d, x, y + h / 2.0, (w, h / 2.0));
            format!(
                r#"<rect class="s-running" x="{:.2}" y="{:.2}" width="{:.2}" height="{:.2}"/><path class="f-running" d="{d}"/>"#,
                x + inset,
                y + 0.8,
                (w - 2.0 * inset).max(0.1),
                h - 1.6
            )
        }
        _ => {
            full(&mut d, x, y, (w, h));
            format!(r#"<path class="f-ran" d="{d}"/>"#)
        }
    }
}

fn dot(text: &mut String, x: f64, y: f64, w: f64) {
    let wide = (w * 0.28).min(5.0);
    full(
        text,
        x + (w - wide) / 2.0,
        y + CELL * 0.36,
        (wide, CELL * 0.28),
    );
}

/// Minutes since midnight, by the viewer's clock.
fn minutes(face: &Face<'_>, at: Timestamp) -> f64 {
    let local = face.local(at);
    f64::from(local.hour) * 60.0 + f64::from(local.minute) + f64::from(local.second) / 60.0
}

/// What there is to show, by the moments at which days begin.
pub(super) type Days = BTreeMap<Timestamp, Vec<Mark>>;

fn slots_of<'a>(marks: impl Iterator<Item = &'a Mark>) -> u64 {
    marks.map(|mark| mark.slots).sum()
}

/// How many ran, of how many that are decided.
fn counted<'a>(marks: impl Iterator<Item = &'a Mark>) -> (u64, u64) {
    marks.fold((0, 0), |(ran, total), mark| match mark.ran {
        Some(true) => (ran + mark.slots, total + mark.slots),
        Some(false) => (ran, total + mark.slots),
        None => (ran, total),
    })
}

impl Heat {
    pub(super) fn new(face: &Face<'_>, by_day: &Days) -> Self {
        let (ran, total) = counted(by_day.values().flatten());
        let most = by_day.values().map(|marks| slots_of(marks.iter())).max();
        let is_few = most.unwrap_or_default() <= SLOTS_MAX;
        let slots = is_few.then(|| by_slot(face, by_day));
        let not = total - ran;
        let ticks = (0..24).step_by(2).map(|hour| {
            (
                format!("{:.3}%", f64::from(hour) / 24.0 * 100.0),
                format!("{hour:02}"),
            )
        });
        Self {
            hours: by_hour(face, by_day),
            slots,
            says: format!(
                "Slots of the last {} days by time of day, {} time. {} slots; {} did not run.",
                by_day.len(),
                face.zone_name(),
                super::format::count(total),
                super::format::count(not),
            ),
            ran,
            total,
            now: format!("{:.3}%", minutes(face, face.now) / DAY * 100.0),
            ticks: ticks.collect(),
        }
    }
}

fn grid(rows: Vec<Row>) -> Grid {
    let height = rows.len() as f64 * ROW;
    Grid {
        rows,
        height: format!("{height:.0}"),
        full: format!("{:.0}", height + 26.0),
    }
}

fn empty_row(face: &Face<'_>, index: usize, day: Timestamp) -> Row {
    let is_today = face.day(day) == face.day(face.now);
    Row {
        label: if is_today {
            "Today".to_owned()
        } else {
            face.day(day)
        },
        at: day.to_string(),
        is_today,
        label_y: format!("{:.0}", index as f64 * ROW + 38.0),
        share: String::new(),
        ran: String::new(),
        planned: String::new(),
        cells: Vec::new(),
    }
}

fn share(marks: &[Mark]) -> String {
    let (ran, total) = counted(marks.iter());
    percent(ran, total)
}

/// Never rounded up to a whole: 99.96 % is 99.9 %.
pub(super) fn percent(part: u64, of: u64) -> String {
    if of == 0 {
        return "—".to_owned();
    }
    let tenths = part * 1_000 / of;
    if tenths.is_multiple_of(10) {
        format!("{}\u{2009}%", tenths / 10)
    } else {
        format!("{}.{}\u{2009}%", tenths / 10, tenths % 10)
    }
}

/// As wide as the slots are apart, and no narrower than a quarter of an hour.
fn cell_width(face: &Face<'_>, by_day: &Days) -> f64 {
    let mut least = 60.0_f64;
    for marks in by_day.values() {
        for (one, next) in marks.iter().zip(marks.iter().skip(1)) {
            least = least.min(minutes(face, next.at) - minutes(face, one.at));
        }
    }
    least.max(DAY / 96.0)
}

fn by_slot(face: &Face<'_>, by_day: &Days) -> Grid {
    let width = cell_width(face, by_day);
    let mut rows = Vec::with_capacity(by_day.len());
    for (index, (day, marks)) in by_day.iter().enumerate() {
        let mut row = empty_row(face, index, *day);
        let y = index as f64 * ROW + TOP;
        for mark in marks {
            let x = minutes(face, mark.at).min(DAY - width) + width * 0.08;
            let w = width * 0.84;
            match mark.state.class {
                "ran" => full(&mut row.ran, x, y, (w, CELL)),
                "planned" => dot(&mut row.planned, x, y, w),
                class => row.cells.push(Cell {
                    at: mark.at.to_string(),
                    says: format!(
                        "{} {}: {}",
                        face.day(mark.at),
                        face.clock(mark.at),
                        mark.state.word
                    ),
                    shapes: shape(class, x, y, (w, CELL)),
                    x: format!("{:.2}", x - width * 0.08),
                    y: format!("{:.2}", y - 2.0),
                    width: format!("{width:.2}"),
                }),
            }
        }
        row.share = share(marks);
        rows.push(row);
    }
    grid(rows)
}

fn by_hour(face: &Face<'_>, by_day: &Days) -> Grid {
    let mut rows = Vec::with_capacity(by_day.len());
    for (index, (day, marks)) in by_day.iter().enumerate() {
        let mut row = empty_row(face, index, *day);
        let y = index as f64 * ROW + TOP;
        let mut hours = BTreeMap::<u8, Vec<&Mark>>::new();
        for mark in marks {
            hours
                .entry(face.local(mark.at).hour)
                .or_default()
                .push(mark);
        }
        for (hour, of_hour) in hours {
            add_hour(face, &mut row, (f64::from(hour) * 60.0, y), &of_hour);
        }
        row.share = share(marks);
        rows.push(row);
    }
    grid(rows)
}

/// The lower part of a cell is the worst of its states, as tall as its share, and at least half.
fn add_hour(face: &Face<'_>, row: &mut Row, (left, y): (f64, f64), marks: &[&Mark]) {
    let (x, w) = (left + 3.6, 52.8);
    let decided = marks.iter().filter(|mark| mark.state.class != "planned");
    let Some(worst) = decided.clone().min_by_key(|mark| rank(mark.state.class)) else {
        dot(&mut row.planned, x, y, w);
        return;
    };
    let class = worst.state.class;
    if class == "ran" {
        full(&mut row.ran, x, y, (w, CELL));
        return;
    }
    let total = slots_of(decided.clone().copied());
    let same = decided.filter(|mark| mark.state.class == class);
    let same = slots_of(same.copied());
    let tall = (CELL * same as f64 / total.max(1) as f64).max(CELL / 2.0);
    if same < total && CELL - tall > 1.0 {
        full(&mut row.ran, x, y, (w, CELL - tall - 0.6));
    }
    row.cells.push(Cell {
        at: worst.at.to_string(),
        says: format!(
            "{} {:02} h: {} of {} {}",
            face.day(worst.at),
            face.local(worst.at).hour,
            super::format::count(same),
            super::format::count(total),
            worst.state.word.to_lowercase()
        ),
        shapes: shape(class, x, y + CELL - tall, (w, tall)),
        x: format!("{left:.2}"),
        y: format!("{:.2}", y - 2.0),
        width: "60".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_never_rounded_up_to_a_whole() {
        let text = |part, of| percent(part, of).replace('\u{2009}', " ");
        assert_eq!(text(0, 0), "—");
        assert_eq!(text(99_996, 100_000), "99.9 %");
        assert_eq!(text(3, 3), "100 %");
        assert_eq!(text(1, 3), "33.3 %");
        assert_eq!(text(0, 3), "0 %");
    }

    #[test]
    fn no_two_states_have_the_same_shape() {
        let shapes = WORST.map(|class| shape(class, 0.0, 0.0, (10.0, 14.0)));
        for (at, one) in shapes.iter().enumerate() {
            let strip = |text: &str| text.replace(WORST.get(at).copied().unwrap_or(""), "");
            for other in shapes.iter().skip(at + 1) {
                assert_ne!(strip(one), strip(other));
            }
        }
    }
}
