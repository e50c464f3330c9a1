-- due_jobs: the same of few shards and few steps: of each step, these shards are looked up one by one, and what others hold is
-- not read. Rows come in the order of the loops: each needs a row of the one before it, so no other order of them is possible.
SELECT {job $6}, j.due_at, j.shard
FROM generate_series($1::bigint >> 14, $3::bigint >> 14) s(step)
CROSS JOIN LATERAL unnest(CASE WHEN s.step IS NOT NULL THEN $5::smallint[] END) h(shard)
CROSS JOIN LATERAL (
    SELECT j.* FROM jobs j
    WHERE j.due_at IS NOT NULL AND {place} >= greatest($1, (s.step << 14) | (h.shard::bigint << 6))
      AND {place} <= ((s.step << 14) | (h.shard::bigint << 6) | 63)
      AND ({place} > $1 OR j.id > $2) AND j.due_at > $7 AND j.due_at <= $8
    ORDER BY {place}, j.id) j
JOIN defs d ON d.id = j.id
LIMIT $4
