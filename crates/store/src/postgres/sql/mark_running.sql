-- mark_running: for readers. When it was first dispatched is kept through retries.
UPDATE live l SET state = {RunState::Running}, dispatched_at = coalesce(l.dispatched_at, n.dispatched_at)
FROM unnest($1::uuid[], $2::bigint[]) n(id, dispatched_at)
WHERE l.id = ANY(ARRAY[n.id]) AND coalesce(l.claim, 0) = $3
