-- oldest_due: the oldest slot and the oldest run of some shards that nobody holds, due from one moment to another ($3, $4; $1 and
-- $2 are where these stand in the order of plan). The first step that has any has the oldest.
WITH RECURSIVE steps AS (
    (SELECT {place} >> 14 AS step FROM jobs j
     WHERE j.due_at IS NOT NULL AND {place} >= $1::bigint AND {place} <= $2::bigint ORDER BY {place} LIMIT 1)
    UNION ALL
    SELECT n.step FROM steps s CROSS JOIN LATERAL (
        SELECT {place} >> 14 AS step FROM jobs j
        WHERE j.due_at IS NOT NULL AND {place} >= ((s.step + 1) << 14) AND {place} <= $2 ORDER BY {place} LIMIT 1) n)
SELECT (SELECT o.due_at
        FROM steps s
        CROSS JOIN LATERAL (SELECT min(j.due_at)
             FROM unnest(CASE WHEN s.step IS NOT NULL THEN $5::smallint[] END) h(shard)
             CROSS JOIN LATERAL (
                 SELECT j.due_at FROM jobs j
                 WHERE j.due_at IS NOT NULL AND {place} >= ((s.step << 14) | (h.shard::bigint << 6))
                   AND {place} <= ((s.step << 14) | (h.shard::bigint << 6) | 63)
                   AND j.due_at >= $3::bigint AND j.due_at <= $4::bigint
                 ORDER BY {place} LIMIT 1) j) o(due_at)
        WHERE o.due_at IS NOT NULL LIMIT 1),
       (SELECT l.due_at FROM live l
        WHERE l.claim IS NULL AND NOT l.waiting AND l.due_at >= $3 AND l.due_at <= $4 AND l.shard = ANY($5)
        ORDER BY l.due_at LIMIT 1)
