-- wake: the views in which a run waits for something outside of its job. It may be claimed from now on. What someone else is
-- changing at this moment is not waited for.
WITH waits AS MATERIALIZED (
    SELECT l.id FROM unnest($1::uuid[]) n(id) JOIN live l ON l.id = ANY(ARRAY[n.id])
    WHERE l.waiting AND l.wait_reason IS NOT NULL
    ORDER BY coalesce(l.id, l.id) FOR UPDATE OF l SKIP LOCKED)
UPDATE live l SET waiting = false, wait_reason = NULL, wait_until = $2
FROM waits WHERE l.id = ANY(ARRAY[waits.id])
RETURNING l.due_at, l.id, l.job, l.tenant, l.state
