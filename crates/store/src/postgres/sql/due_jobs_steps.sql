-- due_jobs: the same of few shards over any length of time: only steps that have something are looked at.
WITH RECURSIVE steps AS (
    (SELECT {place} >> 14 AS step FROM jobs j
     WHERE j.due_at IS NOT NULL AND {place} >= $1::bigint AND {place} <= $3::bigint ORDER BY {place} LIMIT 1)
    UNION ALL
    SELECT n.step FROM steps s CROSS JOIN LATERAL (
        SELECT {place} >> 14 AS step FROM jobs j
        WHERE j.due_at IS NOT NULL AND {place} >= ((s.step + 1) << 14) AND {place} <= $3 ORDER BY {place} LIMIT 1) n)
SELECT {job $6}, j.due_at, j.shard
FROM steps s
CROSS JOIN LATERAL unnest(CASE WHEN s.step IS NOT NULL THEN $5::smallint[] END) h(shard)
CROSS JOIN LATERAL (
    SELECT j.* FROM jobs j
    WHERE j.due_at IS NOT NULL AND {place} >= greatest($1, (s.step << 14) | (h.shard::bigint << 6))
      AND {place} <= ((s.step << 14) | (h.shard::bigint << 6) | 63)
      AND ({place} > $1 OR j.id > $2) AND j.due_at > $7 AND j.due_at <= $8
    ORDER BY {place}, j.id) j
JOIN defs d ON d.id = j.id
LIMIT $4
