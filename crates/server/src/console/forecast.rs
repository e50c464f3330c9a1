//! What comes, drawn: the busiest second of every five minutes above the mean by lane, and the hot seconds beside it. Then one second
//! by itself, with a spread for its jobs.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use model::schedule::{format_span, parse_span};
use model::{JobId, Lane, Role, Timestamp, Version};

use super::charts::{self, Linear, Tick, number};
use super::format::{When, count};
use super::frame::{Answer, Frame, face, page};
use super::job::find;
use super::jobs::name_of;
use super::login::param;
use super::viewer::{By, Posted, Viewer};
use crate::api::Api;
use crate::ops::forecast::{Forecast, Reach};
use crate::ops::rush::{self, Rush};
use crate::ops::{Expect, JobDraft, Mode, OpError, Patch, jobs};
use crate::problem::{Kind, Problem};

/// The upper tier from its top to its axis, then the lower one.
const PEAKS: (f64, f64) = (20.0, 136.0);
const MEANS: (f64, f64) = (160.0, 226.0);
/// Hot seconds that have a flag: more would stand over each other.
const FLAGS: usize = 4;
/// In hundredths of the width, between two flags.
const APART: f64 = 12.0;

/// A hot second on the chart.
pub(super) struct Flag {
    pub x: String,
    pub y: String,
    pub slots: String,
    pub clock: String,
    /// Towards the middle.
    pub is_left: bool,
}

/// A hot second in the table.
pub(super) struct HotRow {
    pub when: When,
    pub slots: String,
    pub movable: String,
    /// Where its jobs are; none if none of them may be spread.
    pub href: Option<String>,
}

pub(super) struct ForecastPanel {
    pub says: String,
    pub exact: String,
    pub across: Vec<Tick>,
    pub down: Vec<Tick>,
    pub peaks: String,
    pub lanes: Vec<(&'static str, String)>,
    /// Where what is sampled begins, in percent; none if all is exact.
    pub sampled_from: Option<(String, String)>,
    pub limit: Option<(String, String)>,
    pub flags: Vec<Flag>,
    pub hot_above: String,
    pub hot: Vec<HotRow>,
    pub is_empty: bool,
}

fn about(number: f64, is_sampled: bool) -> String {
    let sign = if is_sampled { "~" } else { "" };
    format!("{sign}{}", count(number.round() as u64))
}

impl ForecastPanel {
    pub(super) fn of(viewer: &Viewer, forecast: &Forecast) -> Self {
        let face = face(viewer);
        let points = forecast.points(Reach::Day);
        let (seconds, width) = Reach::Day.points();
        let whole = f64::from(seconds) * f64::from(width);
        let to = forecast.from.plus(Duration::from_secs_f64(whole));
        let peaks = Tier::over(points.iter().map(|it| it.peak), PEAKS);
        let mean = |slots: f64| slots / f64::from(seconds);
        let sums = points.iter().map(|it| mean(it.lanes.iter().sum()));
        let means = Tier::over(sums, MEANS);
        let share = |at: Timestamp| at.since(forecast.from).as_secs_f64() / whole * 100.0;
        let exact = share(forecast.exact_until).clamp(0.0, 100.0);
        let is_sampled = points.iter().any(|it| it.is_sampled) && exact < 100.0;
        let above = forecast.hot_above;
        let limit = (above < peaks.scale.top && !forecast.hot.is_empty()).then(|| {
            let text = format!("hot from {}", count(above as u64));
            (format!("{:.1}", peaks.y(above)), text)
        });
        let down = peaks.ticks().into_iter().chain(means.ticks()).collect();
        Self {
            says: says(viewer, forecast),
            exact: exact_words(forecast, is_sampled),
            across: charts::across(&face, forecast.from, to),
            down,
            peaks: peaks.bars(points.iter().map(|it| it.peak)),
            lanes: lanes(forecast, &means, mean),
            sampled_from: is_sampled
                .then(|| (format!("{exact:.2}%"), format!("{:.2}%", 100.0 - exact))),
            limit,
            flags: flags(viewer, forecast, &peaks, share),
            hot_above: count(above as u64),
            hot: forecast
                .hot
                .iter()
                .map(|hot| HotRow {
                    when: face.when(hot.at),
                    slots: about(hot.slots, hot.is_sampled),
                    movable: about(hot.movable, hot.is_sampled),
                    href: (hot.movable >= 1.0)
                        .then(|| format!("/spread?at={}", hot.at.as_millis())),
                })
                .collect(),
            is_empty: points.iter().all(|it| it.peak <= 0.0),
        }
    }
}

/// One of the two charts: from zero to a round number above all.
struct Tier {
    scale: Linear,
    top: f64,
    bottom: f64,
}

impl Tier {
    fn over(values: impl Iterator<Item = f64>, (top, bottom): (f64, f64)) -> Self {
        let most = values.fold(0.0, f64::max);
        let scale = Linear::over(if most > 0.0 { most } else { 1.0 });
        Self { scale, top, bottom }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value / self.scale.top).clamp(0.0, 1.0);
        self.bottom - share * (self.bottom - self.top)
    }

    /// Its ends only: two tiers are on one axis.
    fn ticks(&self) -> [Tick; 2] {
        [0.0, self.scale.top].map(|value| Tick {
            at: format!("{:.1}", self.y(value)),
            label: number(value),
            is_minor: false,
        })
    }

    fn bars(&self, values: impl Iterator<Item = f64>) -> String {
        let mut path = String::new();
        for (at, value) in values.enumerate().filter(|(_, value)| *value > 0.0) {
            let y = self.y(value).min(self.bottom - 1.0);
            let tall = self.bottom - y;
            let _ = write!(path, "M{at}.1 {y:.1}h.8v{tall:.1}h-.8z");
        }
        path
    }
}

/// Areas on top of each other, from the most critical on.
fn lanes(
    forecast: &Forecast,
    tier: &Tier,
    mean: impl Fn(f64) -> f64,
) -> Vec<(&'static str, String)> {
    let points = forecast.points(Reach::Day);
    let mut below = vec![0.0; points.len()];
    let mut all = Vec::new();
    for lane in Lane::ALL {
        let mut path = String::new();
        for (at, (point, below)) in points.iter().zip(&mut below).enumerate() {
            let value = point.lanes.get(lane.index()).copied().map_or(0.0, &mean);
            if value <= 0.0 {
                continue;
            }
            let (low, high) = (tier.y(*below), tier.y(*below + value));
            let _ = write!(path, "M{at} {high:.1}h1V{low:.1}h-1z");
            *below += value;
        }
        all.push((lane.as_str(), path));
    }
    all
}

fn flags(
    viewer: &Viewer,
    forecast: &Forecast,
    peaks: &Tier,
    share: impl Fn(Timestamp) -> f64,
) -> Vec<Flag> {
    let face = face(viewer);
    let mut places: Vec<f64> = Vec::new();
    let mut flags = Vec::new();
    for hot in &forecast.hot {
        let x = share(hot.at);
        if flags.len() == FLAGS || places.iter().any(|other| (other - x).abs() < APART) {
            continue;
        }
        places.push(x);
        flags.push(Flag {
            x: format!("{x:.2}%"),
            y: format!("{:.1}", peaks.y(hot.slots)),
            slots: about(hot.slots, hot.is_sampled),
            clock: face.clock(hot.at),
            is_left: x > 80.0,
        });
    }
    flags
}

fn says(viewer: &Viewer, forecast: &Forecast) -> String {
    let face = face(viewer);
    let points = forecast.points(Reach::Day);
    let busiest = points
        .iter()
        .max_by(|one, other| one.peak.total_cmp(&other.peak));
    let Some(busiest) = busiest.filter(|it| it.peak > 0.0) else {
        return "Nothing is due in the next 24 hours.".to_owned();
    };
    format!(
        "Slots due in the next 24 hours. The busiest second, {}, has {}; {} seconds are hot.",
        face.absolute(busiest.peak_at),
        about(busiest.peak, busiest.is_sampled),
        forecast.hot.len()
    )
}

fn exact_words(forecast: &Forecast, is_sampled: bool) -> String {
    let known = forecast.to.since(forecast.from);
    let whole = Duration::from_secs(86_400);
    if known.as_secs() + 1 < whole.as_secs() && !is_sampled {
        return format!(
            "known for {}",
            format_span(Duration::from_secs(known.as_secs()))
        );
    }
    if !is_sampled {
        return "every slot counted".to_owned();
    }
    let minutes = forecast.exact_until.since(forecast.as_of).as_secs() / 60;
    let share = number(forecast.share * 100.0);
    format!("exact for {minutes} min, then a sample of {share}\u{2009}%")
}

/// A job of one second.
struct SecondRow {
    id: String,
    name: String,
    words: String,
    lane: &'static str,
    version: u32,
    spread: String,
    proposed: Option<String>,
}

#[derive(Template)]
#[template(path = "spread.html")]
struct SpreadPage {
    frame: Frame,
    when: When,
    at: i64,
    spread: String,
    spreads: Vec<String>,
    rows: Vec<SecondRow>,
    before: String,
    after: String,
    movable: usize,
    is_complete: bool,
    may_change: bool,
    done: Option<String>,
    kept: Vec<(String, String)>,
}

fn shown(viewer: &Arc<Viewer>, rush: &Rush) -> SpreadPage {
    let row = |it: &rush::RushJob| SecondRow {
        id: it.job.id.to_string(),
        name: name_of(&it.job),
        words: it.job.def.schedule.words(),
        lane: it.job.def.lane.as_str(),
        version: it.job.version.0,
        spread: format_span(it.job.def.spread),
        proposed: it.proposed.map(format_span),
    };
    let rows: Vec<SecondRow> = rush.jobs.iter().map(row).collect();
    SpreadPage {
        frame: Frame::new(viewer, "One second", "/").with_crumb("One second", ""),
        when: face(viewer).when(rush.at),
        at: rush.at.as_millis(),
        spread: format_span(rush.spread),
        spreads: [10, 30, 60, 300, 600, 3_600]
            .map(|secs| format_span(Duration::from_secs(secs)))
            .to_vec(),
        movable: rows.iter().filter(|row| row.proposed.is_some()).count(),
        rows,
        before: count(rush.peak_before),
        after: count(rush.peak_after),
        is_complete: rush.complete,
        may_change: viewer.may(Role::Admin),
        done: None,
        kept: Vec::new(),
    }
}

/// The second and the spread that a query or a form names.
fn read(api: &Api, at: &str, spread: &str) -> Result<(Timestamp, Duration), Problem> {
    let wrong =
        |name: &'static str, detail: String| Problem::new(Kind::ParameterInvalid, detail).at(name);
    let millis: i64 = at
        .parse()
        .map_err(|_| wrong("at", "at is a moment, in milliseconds".to_owned()))?;
    let at = Timestamp::from_millis(millis);
    let spread = match spread {
        "" => rush::SPREAD,
        text => parse_span(text).map_err(|error| wrong("spread", error.to_string()))?,
    };
    match rush::fault(api.engine.now(), at, spread) {
        Some((name, detail)) => Err(wrong(name, detail)),
        None => Ok((at, spread)),
    }
}

pub(super) async fn second(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Query<Vec<(String, String)>>,
) -> Answer {
    let (at, spread) = read(&api, param(&params, "at"), param(&params, "spread"))?;
    let rush = rush::rush(&api, viewer.caller, at, spread).await?;
    Ok(page(StatusCode::OK, shown(&viewer, &rush).render()?))
}

/// A job as the form named it: `job_…:3:1m`, its id, its version and the spread that was shown for it.
fn picked(text: &str) -> Option<(JobId, Version, Duration)> {
    let mut parts = text.splitn(3, ':');
    let id = parts.next()?.parse().ok()?;
    let version = parts.next()?.parse().ok()?;
    let spread = parse_span(parts.next()?).ok()?;
    Some((id, Version(version), spread))
}

/// Each job by itself, at the version that was shown: one that was changed meanwhile stays as it is.
pub(super) async fn apply(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let fields = &posted.fields;
    let (at, spread) = read(&api, fields.get("at"), fields.get("spread"))?;
    let chosen = fields.0.iter().filter(|(name, _)| name == "job");
    let chosen: Vec<_> = chosen.filter_map(|(_, text)| picked(text)).collect();
    let (mut done, mut kept) = (0, Vec::new());
    for (id, version, spread) in chosen.into_iter().take(rush::JOBS_MAX) {
        let draft = JobDraft {
            spread: Patch::Set(spread),
            ..JobDraft::default()
        };
        let expect = Expect::OneOf(vec![version]);
        match jobs::patch(&api, posted.by.caller, id, draft, &expect, Mode::Write).await {
            Ok(_) => done += 1,
            Err(error) => kept.push(stayed(&api, &posted.by, id, error).await),
        }
    }
    let rush = rush::rush(&api, posted.by.caller, at, spread).await?;
    let text = SpreadPage {
        done: Some(match done {
            1 => "1 job is spread now".to_owned(),
            _ => format!("{} jobs are spread now", count(done)),
        }),
        kept,
        ..shown(&posted.by, &rush)
    };
    Ok(page(StatusCode::OK, text.render()?))
}

/// A job that stays as it was, and why.
async fn stayed(api: &Api, viewer: &Viewer, id: JobId, error: OpError) -> (String, String) {
    let id = id.to_string();
    let name = match find(api, viewer, &id).await {
        Ok(job) => name_of(&job),
        Err(_) => id,
    };
    (name, Problem::from(error).detail)
}
