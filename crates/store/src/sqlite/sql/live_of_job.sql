-- every decision: a job's living runs, oldest first; columns as `get_run_live.sql` has them.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost,
       l.version, l.ask, l.waiting, l.dispatched_at, l.payload, l.attempts, iif(l.claim = -1, zeroblob(16), p.id),
       NULL, l.wait_reason, l.wait_until
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = ?1 ORDER BY l.id
