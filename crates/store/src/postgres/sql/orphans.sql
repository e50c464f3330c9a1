-- orphans: claims of presences that have ended, in the order of runs; and how their holders are known.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, l.version,
       l.ask, l.waiting, l.dispatched_at, CASE WHEN octet_length(l.payload) <= $4::integer THEN l.payload END, l.attempts, p.id,
       l.exclusive, l.claim, CASE WHEN octet_length(l.payload) > $4::integer THEN octet_length(l.payload) END
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.claim = ANY($1::integer[]) AND ($2::smallint[] IS NULL OR l.shard = ANY($2))
ORDER BY l.id LIMIT $3
