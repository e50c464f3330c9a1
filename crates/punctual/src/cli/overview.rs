//! `punctual overview`: how the jobs fare.

use clap::Args;
use comfy_table::Cell;
use serde_json::Value;

use super::output;
use super::view::{self, items, text};
use crate::client::{Call, Client, with_query};
use crate::failure::Failure;

pub(super) const HELP: &str = "\
Counts over a span that ends now: slots that were fired and skipped, runs by how they ended, attempts that were tried again,
how late attempts started and how long they took. Then what there is now, and what somebody should look at.
Nodes are shown with a root key. Percentiles are known to within a factor of 1.41; counts of the last two seconds may be missing.

Examples:
  punctual overview
  punctual overview --span 24h
  punctual overview --json";

/// What to show.
#[derive(Debug, Args)]
pub(super) struct Overview {
    /// How far back: 1h, 6h, 24h or 7d
    #[arg(long, default_value = "1h")]
    span: String,
}

pub(super) async fn execute(it: &Overview, client: &Client, json: bool) -> Result<(), Failure> {
    let path = with_query("/v1/overview", &[("span", it.span.clone())]);
    let answer = client.send(Call::get(path)).await?;
    view::print(&answer, json, show)
}

fn show(overview: &Value) -> Result<(), Failure> {
    for it in items(&overview["attention"]) {
        output::line(&format!("! {} ({})", text(&it["text"]), text(&it["link"])))?;
    }
    let lines = lines(overview);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in lines {
        output::line(&format!("{name:width$}  {value}"))?;
    }
    output::line("")?;
    output::table(&LANES, lanes(&overview["live"]))?;
    let nodes = items(&overview["nodes"]);
    if nodes.is_empty() {
        return Ok(());
    }
    output::line("")?;
    output::table(&NODES, nodes.iter().map(node).collect())
}

const LANES: [&str; 6] = ["LANE", "LIVE", "READY", "RUNNING", "RETRYING", "WAITING"];
const NODES: [&str; 4] = ["NODE", "SHARDS", "LATENESS", "CLOCK"];

fn lines(overview: &Value) -> Vec<(&'static str, String)> {
    let total = &overview["total"];
    let counted = |name: &str| text(&total[name]);
    let said = |name: &str| text(&overview[name]);
    let live = &overview["live"];
    vec![
        ("span", format!("{}, until {}", said("span"), said("as_of"))),
        (
            "fired",
            format!(
                "{}, {} a second",
                counted("fired"),
                said("fired_per_second")
            ),
        ),
        ("ended", ended(total)),
        ("retried", counted("retried")),
        ("late", counted("late")),
        ("skipped", skipped(total)),
        ("lateness", spans(&total["lateness"])),
        ("duration", spans(&total["duration"])),
        ("jobs", jobs(&overview["jobs"])),
        (
            "live runs",
            format!("{}{}", text(&live["live"]), about(live)),
        ),
    ]
}

fn about(counts: &Value) -> &'static str {
    if counts["complete"] == false {
        " (about)"
    } else {
        ""
    }
}

fn ended(total: &Value) -> String {
    let of = |state: &str| format!("{} {state}", text(&total[state]));
    let ratio = ratio(&total["success_ratio"]);
    format!(
        "{}, {}, {}{ratio}",
        of("succeeded"),
        of("dead"),
        of("cancelled")
    )
}

fn jobs(jobs: &Value) -> String {
    let of = |state: &str| format!("{} {state}", text(&jobs[state]));
    let states = ["active", "paused", "finished", "invalid"].map(of);
    format!(
        "{}: {}{}",
        text(&jobs["total"]),
        states.join(", "),
        about(jobs)
    )
}

/// Never rounded up to all of them.
fn ratio(ratio: &Value) -> String {
    let Some(ratio) = ratio.as_f64() else {
        return String::new();
    };
    format!(", {:.2} % of them well", (ratio * 10_000.0).floor() / 100.0)
}

fn skipped(total: &Value) -> String {
    let reasons = total["skipped_by_reason"].as_object();
    let reasons = reasons.into_iter().flatten();
    let each: Vec<_> = reasons
        .map(|(reason, count)| format!("{} {}", text(count), output::clean(reason)))
        .collect();
    let all = text(&total["skipped"]);
    if each.is_empty() {
        all
    } else {
        format!("{all}: {}", each.join(", "))
    }
}

fn spans(spans: &Value) -> String {
    if spans["count"] == 0 {
        return "none".to_owned();
    }
    let of = |name: &str| format!("{} ms", text(&spans[name]));
    format!(
        "p50 {}, p90 {}, p99 {} of {}",
        of("p50_ms"),
        of("p90_ms"),
        of("p99_ms"),
        text(&spans["count"])
    )
}

fn lanes(live: &Value) -> Vec<Vec<Cell>> {
    let row = |lane: &Value| {
        let names = ["lane", "live", "ready", "running", "retrying", "waiting"];
        let cells = names.iter().map(|name| Cell::new(text(&lane[*name])));
        cells.collect()
    };
    items(&live["lanes"]).iter().map(row).collect()
}

fn node(node: &Value) -> Vec<Cell> {
    let names = ["name", "shards", "lateness", "clock_offset"];
    let cells = names.iter().map(|name| Cell::new(text(&node[*name])));
    cells.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_overview_is_lines() {
        let spans = json!({"count": 3, "p50_ms": 1.5, "p90_ms": 2.0, "p99_ms": 9.0});
        let overview = json!({
            "span": "1h", "as_of": "2026-11-18T02:00:00.000Z", "fired_per_second": 0.5,
            "total": {"fired": 7, "succeeded": 5, "dead": 1, "cancelled": 0, "retried": 2, "late": 0, "skipped": 4,
                "skipped_by_reason": {"missed": 3, "overlap": 1}, "success_ratio": 0.99999,
                "lateness": spans, "duration": {"count": 0}},
            "jobs": {"total": 9, "active": 6, "paused": 1, "finished": 2, "invalid": 0, "complete": false},
            "live": {"live": 1, "complete": true, "lanes": []},
        });
        let shown: Vec<String> = lines(&overview)
            .into_iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let expected = [
            "span 1h, until 2026-11-18T02:00:00.000Z",
            "fired 7, 0.5 a second",
            "ended 5 succeeded, 1 dead, 0 cancelled, 99.99 % of them well",
            "retried 2",
            "late 0",
            "skipped 4: 3 missed, 1 overlap",
            "lateness p50 1.5 ms, p90 2.0 ms, p99 9.0 ms of 3",
            "duration none",
            "jobs 9: 6 active, 1 paused, 2 finished, 0 invalid (about)",
            "live runs 1",
        ];
        assert_eq!(shown, expected);
    }
}
