-- claim: the next attempt of runs gets its holder; it is an attempt at the job as it stands now. What someone else is
-- changing at this moment is not waited for. (Not IS NULL: for that the planner may walk through all that is due; numbers
-- of presences begin at 1.)
WITH free AS MATERIALIZED (
    SELECT l.id FROM unnest($1::uuid[]) n(id) JOIN live l ON l.id = n.id
    WHERE coalesce(l.claim, 0) = 0 AND NOT l.waiting AND l.shard = ANY($3::smallint[])
    ORDER BY l.id FOR UPDATE OF l SKIP LOCKED)
UPDATE live l SET claim = $2, state = 0, version = coalesce((SELECT j.version FROM jobs j WHERE j.id = l.job), l.version)
FROM free WHERE l.id = free.id
