//! The overview: whether all is well, in five seconds. Its numbers are those of `GET /v1/overview`.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use model::{Role, RunState};

use super::charts::{self, Chart, millis, number, share, spark};
use super::fault::PageError;
use super::forecast::ForecastPanel;
use super::format::{State as Shown, count};
use super::frame::{Answer, Frame, face, page};
use super::lists::{Cell, Table, node_rows};
use super::login::param;
use super::runs::{self, RunRow};
use super::shared::{self, is_live};
use super::viewer::{By, Viewer};
use crate::api::Api;
use crate::ops::forecast;
use crate::ops::overview::{self, Overview, Span};
use crate::problem::{Kind, Problem};
use crate::wire;

/// Runs of each kind that are listed.
const SHOWN: usize = 10;

/// Something that needs attention.
struct Attention {
    state: Shown,
    text: String,
    href: &'static str,
}

#[derive(Clone)]
struct Figure {
    id: &'static str,
    name: &'static str,
    /// None where the number says nothing about states.
    state: Option<&'static str>,
    value: String,
    unit: &'static str,
    more: String,
    href: &'static str,
    spark: String,
}

impl Figure {
    fn new(id: &'static str, name: &'static str, href: &'static str) -> Self {
        Self {
            id,
            name,
            state: None,
            value: String::new(),
            unit: "",
            more: String::new(),
            href,
            spark: String::new(),
        }
    }
}

/// A point, for readers of tables.
struct PointRow {
    at: String,
    cells: [String; 11],
}

/// The page's content around which the frame of whoever looks stands.
#[derive(Template)]
#[template(path = "overview-main.html")]
struct OverviewMain {
    frame: Frame,
    jobs: String,
    paused: Option<String>,
    as_of: String,
    span: &'static str,
    spans: Vec<(&'static str, String)>,
    may_create: bool,
    attention: Vec<Attention>,
    figures: Vec<Figure>,
    charts: [Chart; 4],
    /// None while it is being counted.
    forecast: Option<ForecastPanel>,
    points: Vec<PointRow>,
    lanes: Table,
    nodes: Option<Table>,
    live: Vec<RunRow>,
    ended: Vec<RunRow>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    main: String,
}

/// What a page that follows reads: its content alone.
#[derive(Template)]
#[template(path = "live.html")]
struct LivePage<'a> {
    live: &'a str,
    main: &'a str,
}

const LIVE: &str = "/live";

/// What needs attention now, and where on these pages there is more about it.
fn attention(of: &wire::OverviewAttention) -> Attention {
    let (class, href) = match of.code {
        "dead-runs" => ("dead", "/dead"),
        "missed-slots" => ("missed", "/runs?state=skipped"),
        "slots-overloaded" => ("skipped", "/runs?state=skipped"),
        "late-runs" => ("late", "/runs"),
        "invalid-jobs" => ("dead", "/jobs?state=invalid"),
        _ => ("late", "/nodes"),
    };
    Attention {
        state: Shown::new(class, ""),
        text: of.text.clone(),
        href,
    }
}

/// `1h` as people write it.
fn words(span: &str) -> String {
    let (digits, unit) = span.split_at(span.len().saturating_sub(1));
    format!("{digits}\u{2009}{unit}")
}

type Counts = wire::OverviewCounts;

fn series(of: &wire::Overview, value: impl Fn(&Counts) -> Option<f64>) -> Vec<Option<f64>> {
    of.points.iter().map(|point| value(&point.counts)).collect()
}

fn count_series(of: &wire::Overview, value: impl Fn(&Counts) -> u64) -> Vec<Option<f64>> {
    series(of, |counts| Some(value(counts) as f64))
}

fn figures(of: &wire::Overview) -> Vec<Figure> {
    let mut figures = rates(of).to_vec();
    figures.extend(states(of));
    figures
}

fn rates(of: &wire::Overview) -> [Figure; 3] {
    let (total, last) = (&of.total, words(of.span));
    // A rate that is rounded to nothing is not nothing.
    let is_small = total.fired > 0 && of.fired_per_second <= 0.0;
    let rate = if is_small {
        "< 0.001".to_owned()
    } else {
        number(of.fired_per_second)
    };
    let late = &total.lateness;
    let half = late.p50_ms.map(|ms| format!("half within {}", millis(ms)));
    let ended = total.succeeded + total.dead;
    [
        Figure {
            value: rate,
            unit: "/s",
            more: format!("{} in {last}", count(total.fired)),
            spark: spark(&count_series(of, |it| it.fired)),
            ..Figure::new("fired", "Slots fired", "/runs")
        },
        Figure {
            value: late.p99_ms.map_or_else(|| "—".to_owned(), number),
            unit: if late.p99_ms.is_some() { "ms" } else { "" },
            more: half.unwrap_or_else(|| "no attempt yet".to_owned()),
            spark: spark(&series(of, |it| it.lateness.p99_ms)),
            ..Figure::new("lateness", "Lateness p99", "/runs")
        },
        Figure {
            state: Some("ran"),
            value: share(total.succeeded, ended),
            unit: if ended > 0 { "%" } else { "" },
            more: format!("{} of {}", count(total.succeeded), count(ended)),
            spark: spark(&series(of, |it| it.success_ratio)),
            ..Figure::new("succeeded", "Succeeded", "/runs?state=succeeded")
        },
    ]
}

fn states(of: &wire::Overview) -> [Figure; 4] {
    let (total, live, last) = (&of.total, &of.live, words(of.span));
    let counted = |number: u64| {
        let more = if live.complete { "" } else { "+" };
        format!("{}{more}", count(number))
    };
    [
        Figure {
            state: Some("running"),
            value: counted(live.live),
            more: format!("{} waiting", counted(live.waiting)),
            ..Figure::new("live", "Live", "/runs?state=running")
        },
        Figure {
            state: Some("retried"),
            value: counted(live.retrying),
            more: format!("{} retried in {last}", count(total.retried)),
            spark: spark(&count_series(of, |it| it.retried)),
            ..Figure::new("retrying", "Retrying", "/runs?state=retrying")
        },
        Figure {
            state: Some("dead"),
            value: count(total.dead),
            more: format!("in {last}"),
            spark: spark(&count_series(of, |it| it.dead)),
            ..Figure::new("dead", "Dead", "/dead")
        },
        Figure {
            state: Some("missed"),
            value: count(total.missed),
            more: format!("{} skipped in {last}", count(total.skipped)),
            spark: spark(&count_series(of, |it| it.missed)),
            ..Figure::new("missed", "Missed", "/runs?state=skipped")
        },
    ]
}

fn charts(viewer: &Viewer, found: &Overview, of: &wire::Overview) -> [Chart; 4] {
    let face = face(viewer);
    let chart = |title, unit, says| Chart {
        title,
        unit,
        says,
        legend: Vec::new(),
        across: charts::across(&face, found.from, found.to),
        down: Vec::new(),
        width: 1,
        shapes: String::new(),
        is_empty: true,
    };
    let [lateness, runs, fired, ratio] = sentences(of);
    let counts = |value: fn(&Counts) -> u64| -> Vec<f64> {
        let points = of.points.iter();
        points.map(|it| value(&it.counts) as f64).collect()
    };
    let seconds = of.point_seconds.max(1) as f64;
    let per_second: Vec<f64> = counts(|it| it.fired)
        .iter()
        .map(|it| it / seconds)
        .collect();
    let percentiles = [
        ("p50", "p50", series(of, |it| it.lateness.p50_ms)),
        ("p95", "p90", series(of, |it| it.lateness.p90_ms)),
        ("p99", "p99", series(of, |it| it.lateness.p99_ms)),
    ];
    let outcomes = [
        ("ran", "ran", counts(|it| it.succeeded)),
        ("skipped", "cancelled", counts(|it| it.cancelled)),
        ("missed", "missed", counts(|it| it.missed)),
        ("dead", "dead", counts(|it| it.dead)),
    ];
    let ratios = series(of, |it| it.success_ratio);
    let about = "share of the runs that ended";
    [
        charts::decades(
            chart("Lateness", "from due to dispatched", lateness),
            &percentiles,
        ),
        charts::stacked(
            chart("Runs", "that ended, and slots missed", runs),
            &outcomes,
        ),
        charts::rate(chart("Slots fired", "per second", fired), &per_second),
        charts::shares(chart("Succeeded", about, ratio), &ratios),
    ]
}

/// What is to be seen on each chart.
fn sentences(of: &wire::Overview) -> [String; 4] {
    let (total, last) = (&of.total, words(of.span));
    let ms = |it: Option<f64>| it.map_or_else(|| "unknown".to_owned(), millis);
    let late = &total.lateness;
    let ended = total.succeeded + total.dead;
    [
        format!(
            "Lateness over the last {last}: p50 {}, p90 {}, p99 {}.",
            ms(late.p50_ms),
            ms(late.p90_ms),
            ms(late.p99_ms)
        ),
        format!(
            "Runs that ended in the last {last}: {} succeeded, {} dead, {} cancelled; {} slots missed.",
            count(total.succeeded),
            count(total.dead),
            count(total.cancelled),
            count(total.missed)
        ),
        format!(
            "Slots fired in each second of the last {last}: {} on average.",
            number(of.fired_per_second)
        ),
        format!(
            "Share of runs that succeeded over the last {last}: {} % of {}.",
            share(total.succeeded, ended),
            count(ended)
        ),
    ]
}

fn points(viewer: &Viewer, found: &Overview, of: &wire::Overview) -> Vec<PointRow> {
    let face = face(viewer);
    let rows = found.points.iter().zip(&of.points).rev();
    let row = |((at, _), point): (&(model::Timestamp, model::Rollup), &wire::OverviewPoint)| {
        let it = &point.counts;
        let ms = |it: Option<f64>| it.map_or_else(|| "—".to_owned(), millis);
        let ended = it.succeeded + it.dead;
        let ratio = if ended == 0 {
            "—".to_owned()
        } else {
            format!("{}\u{2009}%", share(it.succeeded, ended))
        };
        let numbers = [
            it.fired,
            it.succeeded,
            it.dead,
            it.cancelled,
            it.retried,
            it.late,
            it.skipped,
        ];
        let [fired, ran, dead, cancelled, retried, late, skipped] = numbers.map(count);
        PointRow {
            at: face.absolute(*at),
            cells: [
                fired,
                ran,
                dead,
                cancelled,
                retried,
                late,
                skipped,
                ratio,
                ms(it.lateness.p50_ms),
                ms(it.lateness.p90_ms),
                ms(it.lateness.p99_ms),
            ],
        }
    };
    rows.map(row).collect()
}

fn lanes(of: &wire::Overview) -> Table {
    let row = |lane: &wire::OverviewLane| {
        let number = |number| Cell::Number(count(number));
        vec![
            Cell::Text(lane.lane.to_owned()),
            number(lane.live),
            number(lane.ready),
            number(lane.running),
            number(lane.retrying),
            number(lane.waiting),
        ]
    };
    Table {
        caption: "Live runs by lane",
        head: vec![
            "Lane",
            "#Live",
            "#Ready",
            "#Running",
            "#Retrying",
            "#Waiting",
        ],
        rows: of.live.lanes.iter().map(row).collect(),
    }
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Answer {
    let text = Some(param(&params, "span")).filter(|text| !text.is_empty());
    let span = Span::parse(text.unwrap_or(Span::Hour.as_str())).ok_or_else(|| {
        let all = Span::ALL.map(Span::as_str).join(", ");
        Problem::new(Kind::ParameterInvalid, format!("the span is one of {all}"))
    })?;
    if is_live(&headers) {
        let render = async || {
            let main = main(&api, &viewer, span).await?.render()?;
            let (live, main) = (LIVE, main.as_str());
            Ok(LivePage { live, main }.render()?)
        };
        return shared::overview(&api, (&viewer, span), &headers, render).await;
    }
    let main = main(&api, &viewer, span).await?;
    let text = main.render()?;
    let (frame, main) = (main.frame, text);
    Ok(page(StatusCode::OK, OverviewPage { frame, main }.render()?))
}

async fn main(api: &Arc<Api>, viewer: &Arc<Viewer>, span: Span) -> Result<OverviewMain, PageError> {
    let found = overview::overview(api, viewer.caller, span).await?;
    let of = wire::Overview::of(&found);
    let listed = async |states: &[RunState]| runs::rows(api, viewer, states, None, SHOWN).await;
    let (live, _) = listed(&[RunState::Running, RunState::Ready, RunState::Retrying]).await?;
    let (ended, _) = listed(&[RunState::Succeeded, RunState::Dead, RunState::Cancelled]).await?;
    let forecast = forecast::soon(api, viewer.caller).await?;
    let face = face(viewer);
    Ok(OverviewMain {
        forecast: forecast.map(|it| ForecastPanel::of(viewer, &it)),
        frame: Frame::new(viewer, "Overview", "/").with_live(Some(LIVE.to_owned())),
        jobs: count(of.jobs.total),
        paused: Some(of.jobs.paused).filter(|paused| *paused > 0).map(count),
        as_of: format!("{}, {}", face.day(found.as_of), face.clock(found.as_of)),
        span: of.span,
        spans: Span::ALL
            .map(|span| (span.as_str(), words(span.as_str())))
            .to_vec(),
        may_create: viewer.may(Role::Admin),
        attention: of.attention.iter().map(attention).collect(),
        figures: figures(&of),
        charts: charts(viewer, &found, &of),
        points: points(viewer, &found, &of),
        lanes: lanes(&of),
        nodes: viewer.may(Role::Root).then(|| node_rows(viewer, api)),
        live,
        ended,
    })
}
