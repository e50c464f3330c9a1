-- wake_due: the views in which a run waits for something outside of its job, and has waited as long as it may. It may be
-- claimed from now on. What someone else is changing at this moment is not waited for.
WITH waits AS MATERIALIZED (
    SELECT l.id FROM live l
    WHERE l.wait_reason IS NOT NULL AND l.wait_until <= $1 AND l.waiting AND ($2::smallint[] IS NULL OR l.shard = ANY($2))
    ORDER BY l.wait_until LIMIT $3 FOR UPDATE OF l SKIP LOCKED)
UPDATE live l SET waiting = false, wait_reason = NULL, wait_until = $1
FROM waits WHERE l.id = ANY(ARRAY[waits.id])
RETURNING l.due_at, l.id, l.job, l.tenant, l.state
