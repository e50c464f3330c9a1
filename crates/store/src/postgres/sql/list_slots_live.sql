-- list_slots: live runs of a job's slots, oldest first.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, l.version,
       l.ask, l.waiting, l.dispatched_at, l.payload, l.attempts, p.id, l.exclusive, l.claim, NULL::integer
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = $1 AND l.tenant = $2 AND l.id >= $3 AND l.id < $4 AND l.kind = 0 ORDER BY l.id LIMIT $5
