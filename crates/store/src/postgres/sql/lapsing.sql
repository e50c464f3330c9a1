-- lapsing: attempts that are trusted no longer than that, and either watched for long enough or out of time, the earliest first,
-- behind a place.
SELECT h.run, h.job, h.attempt, h.node, h.dispatched_at, h.beat_within, h.timeout_at, h.trusted_until, h.cancelled, h.beaten_at, h.progress
FROM handed h WHERE h.trusted_until <= $1 AND ($2::smallint[] IS NULL OR h.shard = ANY($2))
    AND h.trusted_until >= $5 AND (h.trusted_until, h.run) > ($5, $6) AND (h.timeout_at <= $1 OR h.beat_within <= $4)
ORDER BY h.trusted_until, h.run LIMIT $3
