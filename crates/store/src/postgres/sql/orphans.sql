-- orphans: claims of presences that have ended, in the order of runs; and how their holders are known. All live runs are walked
-- by their key: that is done once for each such presence and shard (see `clear`), and an index would be written with every run.
SELECT {live $4}, (SELECT p.id FROM presences p WHERE p.no = l.claim)
FROM live l
WHERE l.claim = ANY($1::integer[]) AND ($2::smallint[] IS NULL OR l.shard = ANY($2)) AND l.id >= $5
ORDER BY l.id LIMIT $3
