-- list_runs: live runs, newest first.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, l.version,
       l.ask, l.waiting, l.dispatched_at, l.payload, l.attempts, p.id, l.exclusive, l.claim, NULL::integer
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.tenant = $1 AND l.id < $2 AND l.state = ANY($3::smallint[]) AND $5::uuid IS NULL ORDER BY l.id DESC LIMIT $4
