-- fire: whether one of the newest few runs of a job that have ended was under way at a moment. State 6 was skipped.
SELECT 1 FROM (
    SELECT dispatched_at, settled_at FROM history_{day}
    WHERE job = ?1 AND id >= ?2 AND id < ?3 AND state <> 6 /* RunState::Skipped */
    ORDER BY id DESC LIMIT ?5)
WHERE dispatched_at < ?4 AND settled_at > ?4
