//! Creating in bulk: batch requests, a job a line. Bare jobs have a schedule, a target and a small payload; real ones
//! also what people give them: a key, two labels, a cron expression in a named zone and a payload of a hundred bytes.

use std::time::Duration;

use bytes::Bytes;
use executor::Registry;
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::json;

use super::figures::{Bar, Figures};
use super::http::{Served, broken, connect, job_body, request};
use super::rig::{self, Base, Place};
use super::{floor, floor_pg};
use crate::failure::Failure;

/// Lines of one request.
const LINES_MAX: usize = 200_000;

const TEAMS: [&str; 8] = [
    "billing", "search", "growth", "mobile", "data", "support", "ops", "legal",
];
const REGIONS: [&str; 4] = ["eu-west", "eu-north", "us-east", "ap-south"];
const ZONES: [&str; 6] = [
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Tokyo",
    "Australia/Sydney",
];

/// What is created.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Bare,
    Real,
}

/// How fast, and how large what was created is.
struct Ingested {
    rate: f64,
    size: f64,
}

pub(super) async fn ingest(
    base: &Base,
    with_floor: bool,
    count: usize,
    show: &dyn Fn(u64, u64),
) -> Result<Vec<Figures>, Failure> {
    let bare = one(base, Kind::Bare, count, show).await?;
    let figures = |name, ingested: &Ingested| {
        Figures::new(name)
            .with("jobs", ingested.rate, "/s")
            .with("size", ingested.size, " B a job")
    };
    let mut bare = figures("ingest", &bare);
    if with_floor {
        bare = against_floor(base, bare, count).await?;
    }
    let ingested = one(base, Kind::Real, count, show).await?;
    let mut real = figures("ingest of real jobs", &ingested);
    if base.is_database() {
        real = real
            .bar(Bar::at_least("jobs a second", ingested.rate, 45_000.0))
            .bar(Bar::at_most("B a job", ingested.size, 700.0));
    }
    Ok(vec![bare, real])
}

async fn against_floor(base: &Base, figures: Figures, count: usize) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    match &place {
        Place::Folder(folder) => {
            let floor = floor::insert_jobs(folder.path(), 1_000, count)?;
            Ok(figures.against(floor, 0.5))
        }
        Place::Schema(schema) => {
            let floor = floor_pg::insert_jobs(schema, count).await?;
            place.end().await?;
            Ok(figures.against(floor, 0.6))
        }
    }
}

async fn one(
    base: &Base,
    kind: Kind,
    count: usize,
    show: &dyn Fn(u64, u64),
) -> Result<Ingested, Failure> {
    let place = Place::new(base)?;
    let served = Served::start(&place, Registry::default()).await?;
    let mut sender = connect(served.address).await?;
    let mut took = Duration::ZERO;
    for first in (0..count).step_by(LINES_MAX) {
        let numbers = first..count.min(first + LINES_MAX);
        let lines = lines(kind, numbers.clone());
        took += post(&served, &mut sender, lines, numbers.len()).await?;
        show(numbers.end as u64, count as u64);
    }
    served.stop().await;
    place.rest().await?;
    let size = place.size().await?;
    place.end().await?;
    Ok(Ingested {
        rate: count as f64 / took.as_secs_f64(),
        size: size as f64 / count as f64,
    })
}

fn lines(kind: Kind, numbers: std::ops::Range<usize>) -> Bytes {
    let (month, bare) = (quiet_month(), job_body());
    let mut lines = Vec::with_capacity(numbers.len() * 400);
    for number in numbers {
        match kind {
            Kind::Bare => lines.extend_from_slice(&bare),
            Kind::Real => lines.extend_from_slice(real_body(number, month).as_bytes()),
        }
        lines.push(b'\n');
    }
    Bytes::from(lines)
}

/// A month half a year from now, more or less: nothing of what is created comes due meanwhile.
fn quiet_month() -> i64 {
    let days = rig::now().as_millis() / (24 * 3_600 * 1_000);
    (days * 12 / 365 + 6) % 12 + 1
}

fn pick(names: &[&'static str], number: usize) -> Option<&'static str> {
    // Scattered, so that neighbours differ and no two lists go in step.
    let place = model::hash::hash(names.len() as u64, &[number as u64]) as usize;
    names.get(place % names.len()).copied()
}

/// One of many customers' jobs: once a year, at one of 40,320 moments.
fn real_body(number: usize, month: i64) -> String {
    let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1_440 % 28 + 1);
    json!({
        "key": format!("customer-{number:06}"),
        "schedule": {
            "cron": format!("{minute} {hour} {day} {month} *"),
            "timezone": pick(&ZONES, number),
        },
        "target": "http://127.0.0.1:9/hook",
        "labels": {"team": pick(&TEAMS, number), "region": pick(&REGIONS, number)},
        "payload": {"customer": format!("c-{number:08}"), "plan": "monthly", "currency": "EUR", "amount": "129.90", "note": "auto-renew"},
    })
    .to_string()
}

/// Sends one batch, and waits for the answers to all of its lines; says how long that took.
async fn post(
    served: &Served,
    sender: &mut SendRequest<Full<Bytes>>,
    lines: Bytes,
    count: usize,
) -> Result<Duration, Failure> {
    let mut request = request(Method::POST, "/v1/jobs/batch", served.address, lines)?;
    let kind = HeaderValue::from_static("application/x-ndjson");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    let begun = rig::uptime();
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status();
    let answers = answer.into_body().collect().await.map_err(broken)?;
    let took = rig::uptime().saturating_sub(begun);
    let answers = answers.to_bytes();
    let created = |line: &&[u8]| line.windows(12).any(|part| part == br#""status":201"#);
    let lines = || answers.split(|byte| *byte == b'\n');
    let done = lines().take_while(created).count();
    if status.is_success() && done == count {
        return Ok(took);
    }
    let refused = lines().nth(done);
    Err(Failure::refused(format!(
        "the batch answered {status}, created {done} jobs and then answered: {}",
        String::from_utf8_lossy(refused.unwrap_or_default())
    )))
}
