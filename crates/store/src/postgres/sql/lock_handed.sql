-- every decision about handed-over attempts: what is kept of them, locked after their runs.
SELECT h.run, h.job, h.attempt, h.node, h.dispatched_at, h.beat_within, h.timeout_at, h.trusted_until, h.cancelled, h.beaten_at, h.progress
FROM handed h WHERE h.run = ANY($1::uuid[]) ORDER BY coalesce(h.run, h.run) FOR UPDATE
