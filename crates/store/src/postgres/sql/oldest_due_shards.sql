-- oldest_due: the same of few shards and few steps.
SELECT (SELECT o.due_at
        FROM generate_series($1::bigint >> 14, $2::bigint >> 14) s(step)
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
