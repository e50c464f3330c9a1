//! What an alert says: our own JSON, or a text as Slack reads it.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{Alert, AlertState, Channel, Job, JobId, Timestamp};
use serde_json::{Value, json};

/// What is said of some alerts of one rule that all fire, or have all recovered.
pub fn message(
    alert: &Alert,
    states: &[AlertState],
    jobs: &BTreeMap<JobId, Job>,
    now: Timestamp,
) -> Bytes {
    let is_firing = states.first().is_some_and(|state| state.firing);
    let word = if is_firing { "firing" } else { "recovered" };
    let said = match alert.channel {
        Channel::Webhook => json!({
            "alert": alert.name.as_str(),
            "state": word,
            "condition": alert.condition.as_str(),
            "at": now.to_string(),
            "jobs": states.iter().map(|it| entry(it, jobs.get(&it.job))).collect::<Vec<_>>(),
        }),
        Channel::Slack => {
            let head = if is_firing { "Firing" } else { "Recovered" };
            let lines = states.iter().map(|it| line(it, jobs.get(&it.job)));
            text(alert, head, lines)
        }
    };
    Bytes::from(said.to_string())
}

/// What is said to try the channel.
pub fn test_message(alert: &Alert, now: Timestamp) -> Bytes {
    let said = match alert.channel {
        Channel::Webhook => json!({
            "alert": alert.name.as_str(),
            "state": "test",
            "condition": alert.condition.as_str(),
            "at": now.to_string(),
            "jobs": [],
        }),
        Channel::Slack => text(alert, "Test", std::iter::empty()),
    };
    Bytes::from(said.to_string())
}

fn entry(state: &AlertState, job: Option<&Job>) -> Value {
    json!({
        "job": state.job.to_string(),
        "key": job.and_then(|job| job.key.as_ref()).map(ToString::to_string),
        "owner": job.and_then(|job| job.owner.as_deref()),
        "since": state.since.to_string(),
        "run": state.run.to_string(),
        "run_state": state.state.as_str(),
        "reason": state.reason.map(|reason| reason.as_str()),
        "run_ended_at": state.at.to_string(),
        "causes": state.causes,
        "sent_before": state.sent,
        "recovered_by": state.ended.map(|(run, _)| run.to_string()),
        "recovered_at": state.ended.map(|(_, at)| at.to_string()),
    })
}

fn text(alert: &Alert, head: &str, lines: impl Iterator<Item = String>) -> Value {
    let (name, condition) = (alert.name.as_str(), alert.condition.as_str());
    let first = format!("{head}: {name} ({condition})");
    let all: Vec<String> = std::iter::once(first).chain(lines).collect();
    json!({ "text": all.join("\n") })
}

fn line(state: &AlertState, job: Option<&Job>) -> String {
    let key = job.and_then(|job| job.key.as_ref());
    let name = match key {
        Some(key) => format!("{} ({})", escaped(key.as_str()), state.job),
        None => state.job.to_string(),
    };
    if let Some((run, at)) = state.ended {
        return format!("• {name}: {run} succeeded at {at}");
    }
    let reason = state.reason.map(|reason| format!(", {}", reason.as_str()));
    let more = if state.causes > 1 {
        format!("; {} since {}", state.causes, state.since)
    } else {
        String::new()
    };
    let (run, at, word) = (state.run, state.at, state.state);
    let reason = reason.unwrap_or_default();
    format!("• {name}: {run} is {word}{reason}, at {at}{more}")
}

/// Such readers take these three for marks of their own.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
