-- every decision about handed-over attempts, and get_handed: what is kept of a run.
SELECT run, job, attempt, node, dispatched_at, beat_within, timeout_at, trusted_until, cancelled, beaten_at, progress
FROM handed WHERE run = ?1
