-- fire: the newest few runs of a job that have ended, before a moment. State 6 was skipped.
SELECT id, kind, dispatched_at, settled_at FROM history_{day}
WHERE job = ?1 AND id >= ?2 AND id < ?3 AND state <> 6 /* RunState::Skipped */
ORDER BY id DESC LIMIT ?4
