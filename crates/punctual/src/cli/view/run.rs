//! Runs as people read them: in a list, and one by one with its attempts.

use comfy_table::Cell;
use engine::{Clock, SystemClock};
use model::Timestamp;
use model::attempt::LEFT_OUT;
use model::schedule::format_span;
use serde_json::Value;

use super::{cut, fields, items, moment, rows_of, state, text};
use crate::cli::output;
use crate::cli::run::Jobs;
use crate::failure::Failure;

pub(crate) fn runs(items: &[Value], jobs: &Jobs, first: bool) -> Result<(), Failure> {
    let now = Clock::now(&SystemClock);
    let rows = items.iter().map(|run| {
        vec![
            Cell::new(text(&run["id"])),
            Cell::new(jobs.key(run)),
            Cell::new(slot(run)),
            state(&run["state"]),
            Cell::new(text(&run["attempt"])),
            Cell::new(duration(run, now)),
            Cell::new(text(&run["outcome"])),
            Cell::new(reason(run)),
        ]
    });
    let head = [
        "ID", "KEY", "SLOT", "STATE", "ATTEMPT", "DURATION", "OUTCOME", "REASON",
    ];
    rows_of(&head, rows.collect(), first, "runs")
}

/// The slot of a run; of one that has none, when it was asked for, and how.
fn slot(run: &Value) -> String {
    if !run["slot"].is_string() {
        return format!("{} {}", text(&run["due_at"]), text(&run["kind"]));
    }
    match run["stretch"]["count"].as_u64() {
        Some(count) if count > 1 => format!("{} ({count})", text(&run["slot"])),
        Some(_) | None => text(&run["slot"]),
    }
}

/// From a run's first dispatch to its end, or until now.
fn duration(run: &Value, now: Timestamp) -> String {
    let moment = |name: &str| Timestamp::parse(run[name].as_str()?).ok();
    let Some(from) = moment("dispatched_at") else {
        return String::new();
    };
    match moment("settled_at") {
        Some(end) => format_span(end.since(from)),
        None => format!("{} so far", format_span(now.since(from))),
    }
}

/// Why a run ended as it did, or what it waits for: "calendar: holidays, by node-1".
pub(crate) fn reason(run: &Value) -> String {
    let mut reason = text(&run["reason"]);
    if run["wait_reason"].is_string() {
        reason.push_str(&format!("waits for {}", text(&run["wait_reason"])));
    }
    if run["note"].is_string() {
        reason.push_str(&format!(": {}", cut(&text(&run["note"]))));
    }
    if run["actor"].is_string() {
        reason.push_str(&format!(", by {}", text(&run["actor"])));
    }
    reason
}

/// One run, a field to a line, its attempts as a table below, then what its target answered last.
pub(crate) fn run(run: &Value, jobs: &Jobs) -> Result<(), Failure> {
    let mut head = run.clone();
    let attempts = head.as_object_mut().and_then(|run| run.remove("attempts"));
    if let Some(head) = head.as_object_mut() {
        if let Some(job) = jobs.job(run) {
            head.insert("key".to_owned(), job["key"].clone());
        }
        let duration = duration(run, Clock::now(&SystemClock));
        if !duration.is_empty() {
            head.insert("duration".to_owned(), duration.into());
        }
    }
    fields(&head)?;
    let attempts = attempts.unwrap_or_default();
    let attempts = items(&attempts);
    let Some(last) = attempts.last() else {
        return Ok(());
    };
    output::line("")?;
    let head = [
        "ATTEMPT",
        "DISPATCHED",
        "SETTLED",
        "OUTCOME",
        "STATUS",
        "NODE",
        "ERROR",
    ];
    output::table(&head, attempts.iter().map(attempt_row).collect())?;
    let known = exchange(last).into_iter().chain(cost(last));
    for line in known.chain(answer(last)) {
        output::line(&line)?;
    }
    Ok(())
}

fn attempt_row(attempt: &Value) -> Vec<Cell> {
    vec![
        Cell::new(text(&attempt["no"])),
        Cell::new(moment(&attempt["dispatched_at"], false)),
        Cell::new(moment(&attempt["settled_at"], false)),
        state(&attempt["outcome"]),
        Cell::new(text(&attempt["status"])),
        Cell::new(text(&attempt["node"])),
        Cell::new(cut(&text(&attempt["error"]))),
    ]
}

/// How the last answer came: whom the request reached, how long each step took, and the headers that are kept.
fn exchange(attempt: &Value) -> Vec<String> {
    let exchange = &attempt["exchange"];
    let mut parts: Vec<String> = Vec::new();
    if let Some(peer) = exchange["peer"].as_str() {
        parts.push(format!("with {peer}"));
    }
    for (name, field) in [
        ("connect", "connect_ms"),
        ("TLS", "tls_ms"),
        ("first byte", "first_byte_ms"),
        ("total", "total_ms"),
    ] {
        if let Some(ms) = exchange[field].as_f64() {
            parts.push(format!("{name} {ms} ms"));
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), format!("exchange {}", parts.join(", "))];
    let headers = exchange["headers"].as_object();
    for (name, value) in headers.into_iter().flatten() {
        lines.push(format!("  {name}: {}", output::clean(&text(value))));
    }
    if let Some(note) = exchange["note"].as_str() {
        lines.push(format!("  note: {}", output::clean(note)));
    }
    lines
}

/// What a command took.
fn cost(attempt: &Value) -> Vec<String> {
    let cost = &attempt["cost"];
    let (cpu, memory) = (cost["cpu_ms"].as_f64(), cost["memory_max"].as_u64());
    let Some((cpu, memory)) = cpu.zip(memory) else {
        return Vec::new();
    };
    let mib = memory as f64 / (1024.0 * 1024.0);
    let mut line = format!("cost processor {cpu} ms, memory {mib:.1} MiB at most");
    let (read, written) = (cost["read_bytes"].as_u64(), cost["written_bytes"].as_u64());
    if let Some((read, written)) = read.zip(written) {
        let [read, written] = [read, written].map(|bytes| bytes.div_ceil(1024));
        line.push_str(&format!(
            ", {read} KiB read and {written} KiB written of storage"
        ));
    }
    vec![String::new(), line]
}

/// The head of what the target answered, as it was laid out, and whether that is all.
fn answer(attempt: &Value) -> Vec<String> {
    let kept = attempt["output"].as_str().unwrap_or("");
    if kept.is_empty() {
        return Vec::new();
    }
    let binary = attempt["output_encoding"] == "base64";
    let bytes = if binary {
        kept.trim_end_matches('=').len() * 3 / 4
    } else {
        kept.len()
    };
    let is_command = attempt["cost"].is_object() || kept.contains(LEFT_OUT);
    let how_much = if attempt["truncated"] == true && is_command {
        format!("cut: of its head and its end {bytes} bytes are kept")
    } else if attempt["truncated"] == true {
        format!("cut: only the first {bytes} bytes are kept")
    } else {
        format!("{bytes} bytes, all of it")
    };
    let form = if binary { ", not text, as base64" } else { "" };
    let what = if is_command { "output" } else { "answer" };
    let mut lines = vec![String::new(), format!("{what} ({how_much}{form}):")];
    lines.extend(
        kept.lines()
            .map(|line| format!("  {}", output::clean(line))),
    );
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_says_how_long_it_took_or_takes() {
        let now = Timestamp::parse("2026-11-16T00:00:10Z").unwrap();
        let check = |run: Value, expected: &str| assert_eq!(duration(&run, now), expected);
        let (from, end) = ("2026-11-16T00:00:00.000Z", "2026-11-16T00:00:01.500Z");
        check(
            json!({ "dispatched_at": from, "settled_at": end }),
            "1500ms",
        );
        check(
            json!({ "dispatched_at": from, "settled_at": null }),
            "10s so far",
        );
        check(json!({ "dispatched_at": null }), "");
        assert_eq!(slot(&json!({ "slot": "a", "due_at": "b" })), "a");
        assert_eq!(
            slot(&json!({ "slot": null, "due_at": "b", "kind": "manual" })),
            "b manual"
        );
        assert_eq!(
            slot(&json!({ "slot": "a", "stretch": { "count": 3 } })),
            "a (3)"
        );
    }

    #[test]
    fn an_answer_is_shown_line_by_line_and_says_whether_it_was_cut() {
        let check = |output: &str, encoding: &str, truncated: bool, expected: &[&str]| {
            let attempt =
                json!({ "output": output, "output_encoding": encoding, "truncated": truncated });
            let shown = answer(&attempt);
            let shown: Vec<&str> = shown.iter().skip(1).map(String::as_str).collect();
            assert_eq!(shown, expected);
        };
        check(
            "a\nb",
            "utf8",
            false,
            &["answer (3 bytes, all of it):", "  a", "  b"],
        );
        let cut = "answer (cut: only the first 8 bytes are kept):";
        check("12345678", "utf8", true, &[cut, "  12345678"]);
        check(
            "\u{1b}[2J",
            "utf8",
            false,
            &["answer (4 bytes, all of it):", "  \\u{1b}[2J"],
        );
        check(
            "/wD+",
            "base64",
            false,
            &[
                "answer (3 bytes, all of it, not text, as base64):",
                "  /wD+",
            ],
        );
        check("", "utf8", false, &[]);
    }

    #[test]
    fn an_exchange_says_whom_it_reached_and_how_long_each_step_took() {
        let attempt = json!({ "exchange": {
            "peer": "192.0.2.7:443", "connect_ms": 0.8, "tls_ms": null, "first_byte_ms": 12.25, "total_ms": 13,
            "headers": { "etag": "\u{1b}a" }, "note": "odd" } });
        let expected = [
            "",
            "exchange with 192.0.2.7:443, connect 0.8 ms, first byte 12.25 ms, total 13 ms",
            "  etag: \\u{1b}a",
            "  note: odd",
        ];
        assert_eq!(exchange(&attempt), expected);
        assert!(exchange(&json!({})).is_empty());
    }

    #[test]
    fn a_reason_says_what_stands_behind_it_and_who_decided() {
        let check = |run: Value, expected: &str| assert_eq!(reason(&run), expected);
        check(json!({ "reason": null }), "");
        check(json!({ "reason": "overlap", "note": null }), "overlap");
        check(
            json!({ "reason": "calendar", "note": "holidays", "actor": "node-1" }),
            "calendar: holidays, by node-1",
        );
        check(
            json!({ "reason": "paused", "actor": "anonymous" }),
            "paused, by anonymous",
        );
    }
}
