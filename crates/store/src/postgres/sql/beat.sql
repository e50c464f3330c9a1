-- beat: a presence that lives on, and how it is. Each beat has a greater mark (`beaten_at`) than the one before, whatever the clock
-- shows. Answers the time before anything is written. `expires_at` says when it was, and nodes of the version before go by it.
-- The column `lag` has its lateness. A low-water mark says nothing of shards that were taken since it was measured.
UPDATE presences p
SET beaten_at = greatest(t.up, p.beaten_at + 1), expires_at = t.up + $4::bigint,
    seen_at = greatest(p.seen_at, t.now_us / 1000),
    schedules = $5, executes = $6, room = $7, lag = $8, ahead = $9, uncertainty = $10,
    low_water = CASE WHEN p.taken = $12::bigint THEN $11::bigint ELSE p.low_water END
FROM (SELECT coalesce($2::bigint, now_us()) AS now_us, coalesce($3::bigint, now_ms()) AS up) t
WHERE p.id = $1 AND p.ended_at IS NULL
RETURNING t.now_us
