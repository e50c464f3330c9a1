//! What statements leave to be filled in when they are prepared, so that it is written once: the numbers of words, such as
//! `{RunState::Skipped}`, and the columns of a job, a live run or an ended one, in the order in which `rows` reads them; those
//! of other tables are in `crate::statement`. `{place}` is where a job stands in the order of plan. `{job}` and `{live}` read
//! payloads whole; `{job $2}` and `{live $2}` leave those in the store that have more bytes than $2.

use crate::code::number;
use crate::statement::{columns, filled as filled_with, of_table};

/// Columns of jobs `j`: where they stand.
const STANDING: &str = "j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, \
    j.catch_up_to, j.manual_runs, j.failures";

/// Columns of their definitions `d`.
const DEFINITION: &str = "d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc, d.calendars, d.owner, d.once_until";

/// Columns of live runs `l`; statements say besides who their holder is.
const LIVE: &str = "l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, \
    l.version, l.ask, l.waiting, l.dispatched_at, l.attempts, l.exclusive, l.claim, \
    l.wait_reason, l.wait_until";

/// Columns of history, as it is written and read.
const HISTORY: &str = "id, job, tenant, kind, slot, replay_of, due_at, lane, state, reason, attempt, lost, version, \
    dispatched_at, settled_at, outcome, status, error, output, stretch_last, stretch_count, payload, attempts, note, actor";

/// Where a job `j` stands in the order of plan, as its index has it (`place.rs`).
const PLACE: &str = "(((j.due_at >> 6) << 14) | (j.shard::bigint << 6) | (j.due_at & 63))";

/// A statement as it is prepared.
pub(super) fn filled(sql: &str) -> String {
    filled_with(sql, value)
}

fn value(blank: &str) -> Option<String> {
    if let Some(number) = number(blank) {
        return Some(number.to_string());
    }
    let (what, with) = blank.split_once(' ').unwrap_or((blank, ""));
    match what {
        "standing" => Some(STANDING.to_owned()),
        "job" => Some(format!(
            "{STANDING}, {}",
            with_payload(DEFINITION, "d", with)
        )),
        "live" => Some(with_payload(LIVE, "l", with)),
        "history" => Some(history(with)),
        "place" => Some(PLACE.to_owned()),
        _ => columns(blank),
    }
}

/// Columns of history: by their names, with that of their table, or each but the id set to what was to be inserted.
fn history(with: &str) -> String {
    if with != "= excluded" {
        return of_table(HISTORY, with);
    }
    let others = HISTORY.split(", ").filter(|it| *it != "id");
    let set: Vec<String> = others.map(|it| format!("{it} = excluded.{it}")).collect();
    set.join(", ")
}

/// Columns, then the payload and the size of one that is left in the store.
fn with_payload(columns: &str, table: &str, max: &str) -> String {
    let payload = format!("{table}.payload");
    if max.is_empty() {
        return format!("{columns}, {payload}, NULL::integer");
    }
    let size = format!("octet_length({payload})");
    format!(
        "{columns}, CASE WHEN {size} <= {max}::integer THEN {payload} END, CASE WHEN {size} > {max}::integer THEN {size} END"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_filled_and_anything_else_stays() {
        let filled = filled("a {RunState::Skipped} b {JobState::Active}, {day} {");
        assert_eq!(filled, "a 6 b 0, {day} {");
    }

    #[test]
    fn columns_have_the_name_of_their_table() {
        let filled = filled("SELECT {history h} FROM history h");
        assert!(filled.starts_with("SELECT h.id, h.job, h.tenant, "));
        assert!(filled.ends_with(", h.note, h.actor FROM history h"));
        assert_eq!(filled.matches("h.").count(), 25);
    }
}
