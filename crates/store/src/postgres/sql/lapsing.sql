-- lapsing: attempts that are trusted no longer than that, the earliest first.
SELECT h.run, h.job, h.attempt, h.node, h.dispatched_at, h.beat_within, h.timeout_at, h.trusted_until, h.cancelled, h.beaten_at, h.progress
FROM handed h WHERE h.trusted_until <= $1 AND ($2::smallint[] IS NULL OR h.shard = ANY($2))
ORDER BY h.trusted_until, h.run LIMIT $3
