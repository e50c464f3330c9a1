-- oldest_due: the oldest slot and the oldest run of some shards that nobody holds, due at a moment or later.
SELECT (SELECT j.due_at FROM jobs j
        WHERE j.due_at IS NOT NULL AND j.due_at >= $2::bigint AND ($1::smallint[] IS NULL OR j.shard = ANY($1))
        ORDER BY j.due_at LIMIT 1),
       (SELECT l.due_at FROM live l
        WHERE l.claim IS NULL AND NOT l.waiting AND l.due_at >= $2 AND ($1 IS NULL OR l.shard = ANY($1))
        ORDER BY l.due_at LIMIT 1)
