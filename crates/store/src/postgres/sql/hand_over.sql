-- hand_over: the views in which the claim is still the node's, and nobody wants the run to end. All others take the slow path.
WITH me AS MATERIALIZED (
    SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE),
moved AS (
    UPDATE live l SET claim = -1, state = {RunState::Running}, dispatched_at = coalesce(l.dispatched_at, n.dispatched_at)
    FROM unnest($2::uuid[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
         n(run, attempt, node, dispatched_at, beat_within, timeout_at)
    WHERE l.id = ANY(ARRAY[n.run]) AND coalesce(l.claim, 0) = (SELECT no FROM me) AND l.attempt = n.attempt AND l.ask IS NULL
    RETURNING n.run, l.job, l.shard, n.attempt, n.node, n.dispatched_at, n.beat_within, n.timeout_at),
kept AS (
    INSERT INTO handed (run, job, shard, attempt, node, dispatched_at, beat_within, timeout_at, trusted_until, cancelled)
    SELECT run, job, shard, attempt, node, dispatched_at, beat_within, timeout_at, least($8::bigint + beat_within, timeout_at), false
    FROM moved
    ON CONFLICT (run) DO UPDATE SET attempt = excluded.attempt, node = excluded.node,
        dispatched_at = excluded.dispatched_at, beat_within = excluded.beat_within, timeout_at = excluded.timeout_at,
        trusted_until = excluded.trusted_until, cancelled = false, beaten_at = NULL, progress = NULL)
SELECT array_agg(run) FROM moved
