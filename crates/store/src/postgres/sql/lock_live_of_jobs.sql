-- change_job, cancel_run, withdraw, start_run, fire: the same, and nobody claims or ends them meanwhile.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, l.version,
       l.ask, l.waiting, l.dispatched_at, l.payload, l.attempts, p.id, l.exclusive, l.claim, NULL::integer
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = ANY($1::uuid[])
ORDER BY coalesce(l.id, l.id)
FOR UPDATE OF l
