//! What statements of both SQL stores leave to be filled in: the columns of tables that are alike in both, each list written
//! once, in the order in which rows are read and written. `{key}` stands for the columns of `keys`, `{user u}` for those of
//! `users` where that is called `u`.

const COLUMNS: [(&str, &str); 10] = [
    (
        "tenant",
        "id, name, note, created_at, jobs_max, payload_bytes_max, history_days_max, runs_day_max, deleting_at",
    ),
    (
        "key",
        "id, tenant, role, label, digest, created_at, expires_at, last_used_at, revoked_at, queues",
    ),
    ("user", "id, name, password, created_at, updated_at"),
    (
        "session",
        "digest, user_id, key_id, tenant, created_at, used_at",
    ),
    (
        "secret",
        "tenant, name, version, hosts, note, created_at, updated_at, master_key, wrapped, value",
    ),
    // An entry as it is made; the database numbers it by `seq`.
    (
        "audit",
        "at, tenant, actor, key, address, request, action, subject, before, after",
    ),
    (
        "seal",
        "number, from_seq, to_seq, sealed_at, gaps, late, entries, key, previous, mac",
    ),
    (
        "replay",
        "id, tenant, state, created_at, actor, rate, run_limit, doc, payload, step, cursor, scanned, started, \
         skipped, updated_at, ended_at, note",
    ),
    (
        "alert",
        "tenant, name, version, channel, created_at, updated_at, doc",
    ),
    (
        "alert_state",
        "tenant, alert, job, step, firing, since, run, state, reason, at, causes, sent, send_at, ended_by, ended_at",
    ),
];

/// The columns that a blank names, if it names some.
pub(crate) fn columns(blank: &str) -> Option<String> {
    let (what, table) = blank.split_once(' ').unwrap_or((blank, ""));
    let (_, columns) = COLUMNS.iter().find(|(name, _)| *name == what)?;
    Some(of_table(columns, table))
}

/// Columns of a table by the name that a statement has for it.
pub(crate) fn of_table(columns: &str, table: &str) -> String {
    if table.is_empty() {
        return columns.to_owned();
    }
    let columns: Vec<String> = columns
        .split(", ")
        .map(|column| format!("{table}.{column}"))
        .collect();
    columns.join(", ")
}

/// A statement with its blanks filled in; those that `value` does not know stay.
pub(crate) fn filled(sql: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut parts = sql.split('{');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .split_once('}')
            .and_then(|(blank, rest)| Some((value(blank)?, rest)))
        {
            Some((value, rest)) => whole.extend([&value, rest]),
            None => whole.extend(["{", part]),
        }
    }
    whole
}

/// A statement of SQLite, filled in once.
#[cfg(feature = "sqlite")]
macro_rules! statement {
    ($path:literal) => {{
        static SQL: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            crate::statement::filled(include_str!($path), crate::statement::columns)
        });
        SQL.as_str()
    }};
}
#[cfg(feature = "sqlite")]
pub(crate) use statement;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_name_of_their_table() {
        let filled = filled("SELECT {user u}, {day} FROM users u", columns);
        let expected =
            "SELECT u.id, u.name, u.password, u.created_at, u.updated_at, {day} FROM users u";
        assert_eq!(filled, expected);
        assert_eq!(columns("session").unwrap().matches(", ").count(), 5);
        assert_eq!(columns("seal s").unwrap().matches("s.").count(), 10);
    }
}
