-- take: the views that `take.sql` has found and locked, less those whose job someone is changing. Runs get their holder;
-- each is an attempt at its job as it stands now.
UPDATE live l SET claim = $2, state = 0, version = coalesce((SELECT j.version FROM jobs j WHERE j.id = l.job), l.version)
FROM unnest($1::uuid[]) n(id) WHERE l.id = ANY(ARRAY[n.id])
RETURNING l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.due_at, l.lane, l.state, l.attempt, l.lost, l.version,
          l.ask, l.waiting, l.dispatched_at,
          CASE WHEN octet_length(l.payload) <= $4::integer THEN l.payload END, l.attempts, $3::uuid, l.exclusive, l.claim,
          CASE WHEN octet_length(l.payload) > $4::integer THEN octet_length(l.payload) END
