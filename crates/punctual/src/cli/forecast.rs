//! `punctual forecast`: what comes, and which jobs may be spread.

use clap::Args;
use comfy_table::Cell;
use hyper::Method;
use hyper::header::IF_MATCH;
use serde_json::{Value, json};

use super::output;
use super::view::{self, items, moment, text};
use crate::client::{Call, Client, encode, with_query};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
Slots per second ahead, by lane: all that are due in the next hour, and in 24 hours. Where jobs or slots are very many, what lies
further ahead is an estimate from a sample of the jobs; such lines say ~. PEAK is the busiest second of each line, AT says which.

With --at, the jobs that are due in that second, and the spread that is proposed for each. Nothing is changed, unless --apply says so:
then each job is edited with the version that was shown, and one that somebody has changed meanwhile stays as it is.

Examples:
  punctual forecast
  punctual forecast --reach 1h
  punctual forecast --at 2026-12-01T00:00:00Z
  punctual forecast --at 2026-12-01T00:00:00Z --spread 5m --apply";

/// What to show.
#[derive(Debug, Args)]
pub(super) struct Forecast {
    /// How far ahead: 1h or 24h
    #[arg(long, default_value = "24h", conflicts_with = "at")]
    reach: String,
    /// Show the jobs that are due in the second of this moment
    #[arg(long)]
    at: Option<String>,
    /// The longest spread to propose
    #[arg(long, default_value = "1m", requires = "at")]
    spread: String,
    /// Give each job the spread that is proposed for it
    #[arg(long, requires = "at")]
    apply: bool,
}

pub(super) async fn execute(it: &Forecast, client: &Client, json: bool) -> Result<(), Failure> {
    let Some(at) = &it.at else {
        let path = with_query("/v1/forecast", &[("reach", it.reach.clone())]);
        let answer = client.send(Call::get(path)).await?;
        return view::print(&answer, json, show);
    };
    let query = [("at", at.clone()), ("spread", it.spread.clone())];
    let path = with_query("/v1/forecast/second", &query);
    let answer = client.send(Call::get(path)).await?;
    if it.apply {
        return apply(client, &view::parse(&answer)?, json).await;
    }
    view::print(&answer, json, show_second)
}

const HEAD: [&str; 8] = [
    "FROM",
    "SLOTS",
    "PER SECOND",
    "CRITICAL",
    "STANDARD",
    "BATCH",
    "PEAK",
    "AT",
];

fn show(forecast: &Value) -> Result<(), Failure> {
    // Points in which nothing is due say nothing.
    let points = items(&forecast["points"]).iter();
    let rows: Vec<_> = points.filter(|it| it["slots"] != 0.0).map(point).collect();
    view::rows_of(&HEAD, rows, true, "slots ahead")?;
    let hot = items(&forecast["hot"]);
    if !hot.is_empty() {
        output::line("")?;
    }
    for it in hot {
        let about = about(it);
        output::line(&format!(
            "! {about}{} slots at {}, {about}{} of them may be spread",
            whole(&it["slots"]),
            text(&it["at"]),
            whole(&it["may_spread"])
        ))?;
    }
    if forecast["sampled"] == true {
        let until = text(&forecast["exact_until"]);
        let share = forecast["sample_share"].as_f64().unwrap_or_default() * 100.0;
        output::note(&format!(
            "exact until {until}, then from {share:.2} % of the jobs"
        ));
    }
    Ok(())
}

fn about(it: &Value) -> &'static str {
    if it["sampled"] == true { "~" } else { "" }
}

fn whole(number: &Value) -> String {
    format!("{:.0}", number.as_f64().unwrap_or_default())
}

fn point(point: &Value) -> Vec<Cell> {
    let lanes = items(&point["lanes"]).iter();
    let lanes = lanes.map(|lane| Cell::new(text(&lane["per_second"])));
    let mut row = vec![
        Cell::new(moment(&point["at"], false)),
        Cell::new(format!("{}{}", about(point), whole(&point["slots"]))),
        Cell::new(text(&point["per_second"])),
    ];
    row.extend(lanes);
    row.push(Cell::new(whole(&point["peak"])));
    row.push(Cell::new(moment(&point["peak_at"], false)));
    row
}

const JOBS: [&str; 5] = ["JOB", "SCHEDULE", "LANE", "SPREAD", "PROPOSED"];

fn name(job: &Value) -> String {
    let key = job["key"]
        .as_str()
        .map(|key| output::clean(key).into_owned());
    key.unwrap_or_else(|| text(&job["id"]))
}

fn show_second(second: &Value) -> Result<(), Failure> {
    let rows = items(&second["items"]).iter().map(|job| {
        vec![
            Cell::new(name(job)),
            Cell::new(text(&job["words"])),
            Cell::new(text(&job["lane"])),
            Cell::new(text(&job["spread"])),
            Cell::new(text(&job["proposed"])),
        ]
    });
    view::rows_of(&JOBS, rows.collect(), true, "jobs in that second")?;
    if second["complete"] == false {
        output::note("there are more jobs, or may be");
    }
    output::line(&format!(
        "at most {} in one second, {} with what is proposed",
        text(&second["peak_before"]),
        text(&second["peak_after"])
    ))
}

/// Each job by itself: one that was changed meanwhile stays as it is, and the others do not wait for it.
async fn apply(client: &Client, second: &Value, json: bool) -> Result<(), Failure> {
    let (mut done, mut kept) = (Vec::new(), Vec::new());
    for job in items(&second["items"]) {
        let (Some(id), Some(proposed)) = (job["id"].as_str(), job["proposed"].as_str()) else {
            continue;
        };
        let body = json!({"spread": proposed}).to_string();
        let call = Call::new(Method::PATCH, format!("/v1/jobs/{}", encode(id)))
            .header(IF_MATCH, format!("\"{}\"", text(&job["version"])))
            .json(body);
        match client.send(call).await {
            Ok(_) => done.push(name(job)),
            Err(failure) => kept.push(format!("{}: {}", name(job), failure.text)),
        }
    }
    if json {
        let answer = json!({"spread": done, "kept": kept});
        output::json(answer.to_string().as_bytes())?;
    } else {
        output::line(&format!("{} jobs are spread now", done.len()))?;
    }
    for it in &kept {
        output::warning(it);
    }
    if kept.is_empty() {
        Ok(())
    } else {
        let text = format!("{} jobs stay as they were", kept.len());
        Err(Failure::refused(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_sample_say_so() {
        let number = json!({"slots": 1200.0, "sampled": true});
        assert_eq!(
            format!("{}{}", about(&number), whole(&number["slots"])),
            "~1200"
        );
        let number = json!({"slots": 12.0, "sampled": false});
        assert_eq!(
            format!("{}{}", about(&number), whole(&number["slots"])),
            "12"
        );
    }
}
