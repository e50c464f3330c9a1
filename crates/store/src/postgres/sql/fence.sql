-- fence: of these presences, those whose last beat is still the one that is named end, by the word of one that lives. That is
-- compared when the row is locked, with the row as it then is: whoever has beaten meanwhile, or waits to write a beat, is left
-- alone or comes too late. Each may have gone on for as long as it lived by what its beats were told.
WITH t AS MATERIALIZED (
    SELECT coalesce($4::bigint, now_ms()) AS now, greatest($5::bigint, (SELECT max(seen_at) FROM presences)) AS seen),
lapsed AS MATERIALIZED (
    SELECT p.no FROM presences p JOIN unnest($2::uuid[], $3::bigint[]) AS l (id, mark) ON l.id = p.id
    WHERE p.ended_at IS NULL AND p.beaten_at = l.mark
      AND EXISTS (SELECT 1 FROM presences me WHERE me.id = $1 AND me.ended_at IS NULL)
    ORDER BY p.no FOR UPDATE OF p)
UPDATE presences p SET ended_at =
    CASE WHEN t.now >= greatest(t.seen, p.seen_at + $6::bigint) THEN t.now
         ELSE greatest(t.seen, p.seen_at + $6::bigint) + $7::bigint END
FROM lapsed, t WHERE p.no = lapsed.no
RETURNING p.id
