-- oldest_due: the oldest slot and the oldest run that nobody holds, due at a moment or later and by another. Shards are not in the
-- query: whoever opens the file has them all.
SELECT (SELECT min(due_at) FROM jobs INDEXED BY jobs_due WHERE due_at IS NOT NULL AND due_at >= ?1 AND due_at <= ?2),
       (SELECT min(due_at) FROM live INDEXED BY live_due WHERE claim IS NULL AND waiting = 0 AND due_at >= ?1 AND due_at <= ?2)
