//! Runs as people read them: in a list, and one by one with its attempts.

use comfy_table::Cell;
use serde_json::Value;

use super::{cut, fields, items, moment, rows_of, state, text};
use crate::cli::output;
use crate::failure::Failure;

pub fn runs(items: &[Value], first: bool) -> Result<(), Failure> {
    let rows = items.iter().map(|run| {
        vec![
            Cell::new(text(&run["id"])),
            Cell::new(moment(&run["due_at"], output::is_terminal())),
            state(&run["state"]),
            Cell::new(text(&run["attempt"])),
            Cell::new(text(&run["outcome"])),
            Cell::new(reason(run)),
            Cell::new(text(&run["job"])),
        ]
    });
    let head = ["ID", "DUE", "STATE", "ATTEMPT", "OUTCOME", "REASON", "JOB"];
    rows_of(&head, rows.collect(), first, "runs")
}

/// Why a run ended as it did: "calendar: holidays, by node-1".
pub fn reason(run: &Value) -> String {
    let mut reason = text(&run["reason"]);
    if run["note"].is_string() {
        reason.push_str(&format!(": {}", cut(&text(&run["note"]))));
    }
    if run["by"].is_string() {
        reason.push_str(&format!(", by {}", text(&run["by"])));
    }
    reason
}

/// One run, a field to a line, its attempts as a table below.
pub fn run(run: &Value) -> Result<(), Failure> {
    let mut head = run.clone();
    let attempts = head.as_object_mut().and_then(|run| run.remove("attempts"));
    fields(&head)?;
    let attempts = attempts.unwrap_or_default();
    let attempts = items(&attempts);
    if attempts.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let row = |attempt: &Value| {
        let said = if attempt["error"].is_null() {
            &attempt["output"]
        } else {
            &attempt["error"]
        };
        vec![
            Cell::new(text(&attempt["no"])),
            Cell::new(moment(&attempt["dispatched_at"], false)),
            Cell::new(moment(&attempt["settled_at"], false)),
            state(&attempt["outcome"]),
            Cell::new(text(&attempt["status"])),
            Cell::new(text(&attempt["node"])),
            Cell::new(cut(&text(said))),
        ]
    };
    let head = [
        "ATTEMPT",
        "DISPATCHED",
        "SETTLED",
        "OUTCOME",
        "STATUS",
        "NODE",
        "SAID",
    ];
    output::table(&head, attempts.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_says_what_stands_behind_it_and_who_decided() {
        let check = |run: Value, expected: &str| assert_eq!(reason(&run), expected);
        check(json!({ "reason": null }), "");
        check(json!({ "reason": "overlap", "note": null }), "overlap");
        check(
            json!({ "reason": "calendar", "note": "holidays", "by": "node-1" }),
            "calendar: holidays, by node-1",
        );
        check(
            json!({ "reason": "paused", "by": "anonymous" }),
            "paused, by anonymous",
        );
    }
}
