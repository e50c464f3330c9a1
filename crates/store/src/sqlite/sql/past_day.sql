-- fire: runs of a job that were under way at a moment and have ended since, newest first. State 6 was skipped.
SELECT id, kind, dispatched_at, settled_at FROM history_{day}
WHERE job = ?1 AND id >= ?2 AND id < ?3 AND state <> 6 AND dispatched_at < ?4 AND settled_at > ?4
ORDER BY id DESC LIMIT ?5
