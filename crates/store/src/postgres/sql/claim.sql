-- claim: the views in which a run is free and does not wait, and the lease of its shard is held. The next attempt gets its
-- holder; it is an attempt at the job as it stands now. A retry that far ahead was set by a clock that has gone back: it is
-- due now. All other views leave the row as it is. What someone else is changing at this moment is not waited for, and
-- stays as it is too. (Numbers of presences begin at 1.)
WITH free AS MATERIALIZED (
    SELECT l.id FROM unnest($1::uuid[]) n(id) JOIN live l ON l.id = ANY(ARRAY[n.id])
    WHERE coalesce(l.claim, 0) = 0 AND NOT l.waiting AND l.shard = ANY($3::smallint[])
    ORDER BY coalesce(l.id, l.id) FOR UPDATE OF l SKIP LOCKED)
UPDATE live l SET claim = $2, state = {RunState::Ready},
                  due_at = CASE WHEN l.state = {RunState::Retrying} AND l.due_at > coalesce($4::bigint, now_ms()) + $5::bigint
                                THEN coalesce($4::bigint, now_ms()) ELSE l.due_at END,
                  version = coalesce((SELECT j.version FROM jobs j WHERE j.id = l.job), l.version)
FROM free WHERE l.id = ANY(ARRAY[free.id])
