-- bar_lapsed: everyone whose time is up ends, by the word of one that was heard all the while. A time to live that lies
-- further ahead than one can was promised by a clock that has gone back since. Each may have gone on for as long as it lived
-- by what its beats were told.
WITH t AS MATERIALIZED (
    SELECT coalesce($2::bigint, now_ms()) AS now, coalesce($3::bigint, now_ms()) AS up,
           greatest($4::bigint, (SELECT max(seen_at) FROM presences)) AS seen),
heard AS MATERIALIZED (
    SELECT 1 FROM presences p, t
    WHERE p.id = $1 AND p.ended_at IS NULL AND t.up <= p.expires_at AND t.up >= p.beaten_at
      AND p.beaten_at >= p.unbroken_at + $5::bigint),
lapsed AS MATERIALIZED (
    SELECT p.no FROM presences p, t
    WHERE p.ended_at IS NULL AND (t.up > p.expires_at OR p.expires_at > t.up + $5::bigint)
      AND EXISTS (SELECT 1 FROM heard)
    ORDER BY p.no FOR UPDATE OF p)
UPDATE presences p SET ended_at =
    CASE WHEN t.now >= greatest(t.seen, p.seen_at + $5::bigint) THEN t.now
         ELSE greatest(t.seen, p.seen_at + $5::bigint) + $6::bigint END
FROM lapsed, t WHERE p.no = lapsed.no
RETURNING p.id
