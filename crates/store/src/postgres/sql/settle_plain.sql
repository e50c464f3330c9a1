-- settle: the views in which a first attempt succeeds whose claim is the one named and whose end means nothing to anyone
-- else. Its job is not locked: who makes the end mean something meanwhile has changed the row, and then it is left.
WITH me AS MATERIALIZED (
    SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE),
gone AS (
    DELETE FROM live l
    USING unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::bytea[],
                 $8::bytea[])
          n(id, due, dispatched, settled, status, output, attempts)
    WHERE l.id = ANY(ARRAY[n.id]) AND coalesce(l.claim, 0) = (SELECT no FROM me) AND l.attempt = 1 AND l.lost = 0
      AND NOT l.exclusive
    RETURNING l.id, l.job, l.tenant, l.kind, l.slot, l.replay_of, l.lane, l.version, l.payload, n.due, n.dispatched,
              n.settled, n.status, n.output, n.attempts),
entered AS (
    INSERT INTO history (id, job, tenant, kind, slot, replay_of, due_at, lane, state, attempt, lost, version,
                         dispatched_at, settled_at, outcome, status, output, attempts, payload, actor)
    SELECT id, job, tenant, kind, slot, replay_of, due, lane, {RunState::Succeeded}, 1, 0, version, dispatched, settled,
           {Outcome::Succeeded}, status, output,
           attempts, payload, $9::text
    FROM gone)
SELECT array_agg(id) FROM gone
