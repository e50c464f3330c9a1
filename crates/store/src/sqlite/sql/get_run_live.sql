-- get_run, and every method that answers runs: a live run, its claim as the presence's own name. A payload of more than ?2
-- bytes is left out, and its size is said instead.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost,
       l.version, l.ask, l.waiting, l.dispatched_at, CASE WHEN length(l.payload) <= ?2 THEN l.payload END, l.attempts,
       iif(l.claim = -1, zeroblob(16), p.id), CASE WHEN length(l.payload) > ?2 THEN length(l.payload) END, l.wait_reason, l.wait_until
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.id = ?1
