-- leave: a presence ends, once; when, as far as its claims depend on it. Whatever it is writing is written first.
WITH me AS MATERIALIZED (SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL FOR UPDATE),
t AS MATERIALIZED (
    SELECT coalesce($2::bigint, now_ms()) AS now, greatest($3::bigint, (SELECT max(seen_at) FROM presences)) AS seen)
UPDATE presences p SET ended_at = CASE WHEN t.now >= t.seen THEN t.now ELSE t.seen + $4::bigint END
FROM me, t WHERE p.no = me.no
