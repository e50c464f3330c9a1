-- lapsing: attempts that are trusted no longer than that. The shards are picked by the caller.
SELECT run, job, attempt, node, dispatched_at, beat_within, timeout_at, trusted_until, cancelled, beaten_at, progress
FROM handed WHERE trusted_until <= ?1 ORDER BY trusted_until, run
