-- orphans: claims of presences that have ended, in the order of runs; and how their holders are known.
SELECT {live $4}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.claim = ANY($1::integer[]) AND ($2::smallint[] IS NULL OR l.shard = ANY($2))
ORDER BY l.id LIMIT $3
