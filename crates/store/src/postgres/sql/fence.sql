-- fence: of these presences, those whose last beat is still the one that is named end. That is compared when the row is
-- locked, with the row as it then is: whoever has beaten meanwhile, or waits to write a beat, is left alone or comes too late.
-- Each may have gone on for as long as it lived by the times that its beats were answered with.
WITH t AS MATERIALIZED (
    SELECT coalesce($3::bigint, now_ms()) AS now, greatest($4::bigint, (SELECT max(seen_at) FROM presences)) AS seen),
lapsed AS MATERIALIZED (
    SELECT p.no FROM presences p JOIN unnest($1::uuid[], $2::bigint[]) AS l (id, mark) ON l.id = p.id
    WHERE p.ended_at IS NULL AND p.beaten_at = l.mark
    ORDER BY p.no FOR UPDATE OF p)
UPDATE presences p SET ended_at =
    CASE WHEN t.now >= greatest(t.seen, p.seen_at + $5::bigint) THEN t.now
         ELSE greatest(t.seen, p.seen_at + $5::bigint) + $6::bigint END
FROM lapsed, t WHERE p.no = lapsed.no
RETURNING p.id
