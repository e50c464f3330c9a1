-- beat: a presence that lives on, and how it is. One that was silent for too long, or whose clock went back, cannot vouch
-- for the time before. Answers the time before anything is written.
UPDATE presences p
SET unbroken_at = CASE WHEN t.up > p.expires_at OR t.up < p.beaten_at THEN t.up ELSE p.unbroken_at END,
    beaten_at = t.up, expires_at = t.up + $4::bigint, seen_at = greatest(p.seen_at, t.now_us / 1000),
    schedules = $5, executes = $6, room = $7, lag = $8, ahead = $9, uncertainty = $10
FROM (SELECT coalesce($2::bigint, now_us()) AS now_us, coalesce($3::bigint, now_ms()) AS up) t
WHERE p.id = $1 AND p.ended_at IS NULL
RETURNING t.now_us
