-- get_run, and every method that answers runs: live runs by id, their claims as the presences' own names. A payload of more
-- than $2 bytes is left out, and its size is said instead.
SELECT l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, l.version,
       l.ask, l.waiting, l.dispatched_at, CASE WHEN octet_length(l.payload) <= $2::integer THEN l.payload END, l.attempts, p.id,
       l.exclusive, l.claim, CASE WHEN octet_length(l.payload) > $2::integer THEN octet_length(l.payload) END
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.id = ANY($1::uuid[])
ORDER BY coalesce(l.id, l.id)
