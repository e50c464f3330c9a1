-- hand_over, heartbeat: what is kept of an attempt, as it stands now.
INSERT INTO handed (run, job, attempt, node, dispatched_at, beat_within, timeout_at, trusted_until, cancelled, beaten_at, progress)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (run) DO UPDATE SET attempt = excluded.attempt, node = excluded.node, dispatched_at = excluded.dispatched_at,
    beat_within = excluded.beat_within, timeout_at = excluded.timeout_at, trusted_until = excluded.trusted_until,
    cancelled = excluded.cancelled, beaten_at = excluded.beaten_at, progress = excluded.progress
