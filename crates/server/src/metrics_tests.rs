//! The table of `docs/guides/monitoring.md` is what the registry holds.

use std::collections::BTreeMap;

use model::{JobState, Reason, WaitReason};

use super::*;

/// One metric as it is exposed, and the names of its labels.
#[derive(Default)]
struct Row {
    kind: String,
    help: String,
    labels: Vec<String>,
}

/// Metrics in which every family has a member, so that its labels can be seen.
fn metrics() -> Metrics {
    let engine = engine::Metrics::default();
    let metrics = Metrics::new(&engine);
    engine.lateness_by_lane();
    engine.caught_up_by_lane();
    engine.slots_skipped(Reason::Missed, 1);
    engine.jobs_counted(JobState::Active, 1);
    engine.duty_panicked("plan");
    engine.store_answered("fire", Duration::ZERO);
    engine.waiting_counted(WaitReason::Breaker, 1);
    engine.executed_by(["http"].into_iter());
    metrics.answered(&axum::http::Method::GET, None, 200, Duration::ZERO);
    metrics
}

fn text() -> String {
    metrics().text().unwrap()
}

/// By name, as a query has it: a counter ends in `_total`, the facts about a build in `_info`.
fn rows(text: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::<String, Row>::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => {
                rows.entry((*name).to_owned()).or_default().help = (*help).to_owned()
            }
            ["#", "TYPE", name, kind] => {
                rows.entry((*name).to_owned()).or_default().kind = (*kind).to_owned()
            }
            ["#", ..] => {}
            _ => add_labels(&mut rows, line),
        }
    }
    let suffix = |kind: &str| match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    let named = rows.into_iter();
    named
        .map(|(name, row)| (name + suffix(&row.kind), row))
        .collect()
}

/// The labels of a sample belong to the metric with the longest name that begins it.
fn add_labels(rows: &mut BTreeMap<String, Row>, sample: &str) {
    let Some((name, labels)) = sample.split_once('{') else {
        return;
    };
    let row = rows
        .iter_mut()
        .rev()
        .find(|(metric, _)| name.starts_with(metric.as_str()));
    let (_, row) = row.unwrap();
    let labels = labels.split_once('}').unwrap().0;
    let names = labels
        .split(',')
        .map(|label| label.split_once('=').unwrap().0);
    row.labels = names
        .filter(|name| *name != "le")
        .map(str::to_owned)
        .collect();
}

fn table() -> String {
    let mut table =
        String::from("| metric | type | labels | what it says |\n| --- | --- | --- | --- |\n");
    for (name, row) in rows(&text()) {
        let labels: Vec<String> = row
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let (kind, labels, help) = (
            row.kind,
            labels.join(", "),
            row.help.trim_end_matches('.').to_owned(),
        );
        table.push_str(&format!("| `{name}` | {kind} | {labels} | {help} |\n"));
    }
    table
}

#[test]
fn the_guide_names_every_metric() {
    const GUIDE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guides/monitoring.md"
    );
    let guide = std::fs::read_to_string(GUIDE).unwrap();
    let (before, rest) = guide.split_once("registry -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let made = format!("{before}registry -->\n{}<!-- end -->{after}", table());
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(GUIDE, &made).unwrap();
    } else {
        assert!(
            guide == made,
            "docs/guides/monitoring.md is not current: run make docs"
        );
    }
}

/// A family without a member is not in the text, and so in no table.
#[test]
fn the_list_has_every_metric_that_is_registered() {
    let metrics = metrics();
    let (registered, listed) = (format!("{:?}", metrics.registry), rows(&text()));
    let names = registered.split("Descriptor { name: \"").skip(1);
    let names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        let full = format!("punctual_{name}");
        assert!(listed.keys().any(|it| it.starts_with(&full)), "{name}");
    }
}

/// Every word of a text that names a metric which is not there: what is made of one never fires and shows nothing.
fn unknown_in(text: &str) -> Vec<String> {
    let known = rows(&self::text());
    let is_known = |name: &str| {
        let histogram = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        known.contains_key(name) || histogram.is_some_and(|name| known.contains_key(name))
    };
    // Names with a colon are made by the rules themselves.
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let names = words.filter(|word| word.starts_with("punctual_") || word.starts_with("process_"));
    let unknown = names.filter(|name| !is_known(name));
    unknown.map(str::to_owned).collect()
}

#[test]
fn the_guide_speaks_of_no_metric_that_is_not_there() {
    let guide = include_str!("../../../docs/guides/monitoring.md");
    assert_eq!(unknown_in(guide), Vec::<String>::new());
}

#[test]
fn rules_dashboard_and_scaling_are_made_of_metrics_that_are_there() {
    for text in [
        include_str!("../../../deploy/prometheus/punctual.rules.yml"),
        include_str!("../../../deploy/prometheus/punctual.rules.test.yml"),
        include_str!("../../../deploy/grafana/punctual.json"),
        include_str!("../../../deploy/kubernetes/keda.yaml"),
    ] {
        assert_eq!(unknown_in(text), Vec::<String>::new());
        assert!(text.contains("punctual_"));
    }
}

/// Whoever is woken by an alert finds what to do.
#[test]
fn the_guide_has_every_alert() {
    let rules = include_str!("../../../deploy/prometheus/punctual.rules.yml");
    let guide = include_str!("../../../docs/guides/monitoring.md");
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let missing: Vec<&str> = alerts
        .filter(|alert| !guide.contains(&format!("`{alert}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(guide.matches("| `Punctual").count() > 15);
}
