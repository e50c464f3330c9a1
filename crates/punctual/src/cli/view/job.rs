//! Jobs as people read them: in a list, one by one, and what a change did to one.

use comfy_table::Cell;
use serde_json::{Map, Value};

use super::{fields, items, moment, rows_of, state, text};
use crate::cli::output::{self, clean};
use crate::failure::Failure;

/// Of a schedule, what distinguishes it from its job: shown beside it, where moments can be read.
const BOUNDS: [&str; 4] = ["starts_at", "ends_at", "runs_max", "after_completion"];

/// Slots that a change is said to remove or add; a dry run shows all that the server names.
const SLOTS_SHOWN_MAX: usize = 5;

pub(crate) fn jobs(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|job| {
        let next = if job["resting"] == true {
            "after its run".to_owned()
        } else {
            moment(&job["next_slot"], output::is_terminal())
        };
        vec![
            Cell::new(text(&job["id"])),
            Cell::new(text(&job["key"])),
            state(&job["state"]),
            Cell::new(next),
            Cell::new(schedule(&job["schedule"])),
            Cell::new(target(&job["target"])),
        ]
    });
    rows_of(
        &["ID", "KEY", "STATE", "NEXT SLOT", "SCHEDULE", "TARGET"],
        rows.collect(),
        first,
        "jobs",
    )
}

/// One job, a field to a line.
pub(crate) fn job(job: &Value) -> Result<(), Failure> {
    fields(&spread_out(job))
}

/// The same, with what a line of its own makes easier to read.
fn spread_out(job: &Value) -> Value {
    let mut shown = job.clone();
    let Some(fields) = shown.as_object_mut() else {
        return shown;
    };
    if let Some(schedule) = fields.get_mut("schedule").and_then(Value::as_object_mut) {
        let bounds: Map<String, Value> = BOUNDS
            .iter()
            .filter_map(|name| schedule.remove_entry(*name))
            .collect();
        fields.extend(bounds);
    }
    for name in ["exclude", "only"] {
        match fields.get_mut(name) {
            Some(names) if !items(names).is_empty() => *names = list(names).into(),
            Some(_) | None => {}
        }
    }
    // What is so for nearly every job goes without saying.
    if fields.get("after_completion") == Some(&Value::Bool(false)) {
        fields.remove("after_completion");
    }
    match fields.get_mut("resting") {
        Some(resting) if *resting == true => {
            *resting = "yes: the end of its run sets the next slot".into();
        }
        Some(_) => {
            fields.remove("resting");
        }
        None => {}
    }
    shown
}

/// A list in a line; anything else as it is.
pub(crate) fn list(value: &Value) -> String {
    match value.as_array() {
        Some(several) => several.iter().map(text).collect::<Vec<_>>().join(", "),
        None => text(value),
    }
}

/// What a create or a change did to a job, to runs that it met on their way, and to the slots ahead.
pub(crate) fn changed(done: &str, job: &Value) -> Result<(), Failure> {
    output::line(&headline(done, job))?;
    if job["warning"].is_string() {
        output::warning(&text(&job["warning"]));
    }
    let beside = [
        ("dispatched", "was on its way already"),
        ("unconfirmed", "may still run: its holder has not answered"),
    ];
    for (name, meaning) in beside {
        for run in items(&job["runs"][name]) {
            output::note(&format!("note: {} {meaning}", text(run)));
        }
    }
    for (name, meaning) in [("removed", "no slot any more"), ("added", "a new slot")] {
        let slots = items(&job["slots"][name]);
        for slot in slots.iter().take(SLOTS_SHOWN_MAX) {
            output::note(&format!("note: {} is {meaning}", text(slot)));
        }
        if slots.len() > SLOTS_SHOWN_MAX {
            output::note("note: … these are the first; --json and --dry-run name more");
        }
    }
    Ok(())
}

/// What was done to which job, and when it is due next.
pub(crate) fn headline(done: &str, job: &Value) -> String {
    let mut line = done.to_owned();
    if job["id"].is_string() {
        line.push_str(&format!(" {}", text(&job["id"])));
    }
    if let Some(key) = job["key"].as_str() {
        line.push_str(&format!(" ({})", clean(key)));
    }
    if job["next_slot"].is_string() {
        line.push_str(&format!(", next due {}", moment(&job["next_slot"], true)));
    } else if job["resting"] == true {
        line.push_str(", next due after its run");
    }
    line
}

/// A schedule in a few words.
pub(crate) fn schedule(value: &Value) -> String {
    let zone = value["timezone"].as_str().filter(|zone| *zone != "UTC");
    let when = if value["cron"].is_array() || value["cron"].is_string() {
        match value["cron"].as_array() {
            Some(several) => several.iter().map(text).collect::<Vec<_>>().join(" | "),
            None => text(&value["cron"]),
        }
    } else if !value["every"].is_null() {
        let after = if value["after_completion"] == true {
            " after its run"
        } else {
            ""
        };
        format!("every {}{after}", text(&value["every"]))
    } else if !value["at"].is_null() {
        format!("at {}", text(&value["at"]))
    } else if value.get("broken").is_some() {
        "cannot be read any more".to_owned()
    } else {
        text(value)
    };
    zone.map_or(when.clone(), |zone| format!("{when} {}", clean(zone)))
}

fn target(value: &Value) -> String {
    let (http, shell, python) = (&value["http"], &value["shell"], &value["python"]);
    if let Some(command) = shell["command"].as_array() {
        let parts: Vec<String> = command.iter().map(text).collect();
        parts.join(" ")
    } else if let Some(source) = python["source"].as_str() {
        let first = source.lines().find(|line| !line.trim().is_empty());
        format!(
            "{} {}",
            text(&python["interpreter"]),
            first.unwrap_or_default()
        )
    } else if http.is_object() {
        format!("{} {}", text(&http["method"]), text(&http["url"]))
    } else {
        text(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schedules_and_targets_fit_a_cell() {
        let check = |value: Value, expected: &str| assert_eq!(schedule(&value), expected);
        check(
            json!({ "cron": "@daily", "timezone": "Asia/Tokyo" }),
            "@daily Asia/Tokyo",
        );
        check(json!({ "cron": ["a", "b"], "timezone": "UTC" }), "a | b");
        check(json!({ "every": "5s" }), "every 5s");
        check(
            json!({ "every": "5s", "after_completion": true }),
            "every 5s after its run",
        );
        check(
            json!({ "broken": { "cron": "@daily" }, "error": "x" }),
            "cannot be read any more",
        );
        assert_eq!(
            target(&json!({ "http": { "url": "http://a/", "method": "GET" } })),
            "GET http://a/"
        );
    }

    #[test]
    fn bounds_and_calendars_have_lines_of_their_own() {
        let job = json!({
            "schedule": { "cron": "@daily", "ends_at": "2027-01-01T00:00:00.000Z", "runs_max": 3 },
            "exclude": ["a", "b"], "only": [], "resting": false,
        });
        let shown = spread_out(&job);
        assert_eq!(shown["schedule"], json!({ "cron": "@daily" }));
        assert_eq!(shown["ends_at"], "2027-01-01T00:00:00.000Z");
        assert_eq!(
            (&shown["runs_max"], &shown["exclude"]),
            (&json!(3), &json!("a, b"))
        );
        assert!(shown.get("resting").is_none());
    }

    #[test]
    fn the_headline_says_when_a_job_rests() {
        let job = json!({ "id": "job_1", "key": "k", "resting": true, "next_slot": null });
        assert_eq!(
            headline("changed", &job),
            "changed job_1 (k), next due after its run"
        );
        assert_eq!(
            headline("would create", &json!({ "key": "k" })),
            "would create (k)"
        );
    }
}
