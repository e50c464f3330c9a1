-- lapsing: attempts that are trusted no longer than that, and either watched for long enough or out of time, behind a place. The
-- shards are picked by the caller.
SELECT run, job, attempt, node, dispatched_at, beat_within, timeout_at, trusted_until, cancelled, beaten_at, progress
FROM handed WHERE trusted_until <= ?1 AND trusted_until >= ?3 AND (trusted_until, run) > (?3, ?4)
    AND (timeout_at <= ?1 OR beat_within <= ?2)
ORDER BY trusted_until, run
