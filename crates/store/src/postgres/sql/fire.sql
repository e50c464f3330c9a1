-- fire: the views of jobs that start a run and skip nothing, that stand where plan saw them, and of which nothing lives if
-- their overlap or an edit makes that matter ($20); those of edited jobs only if nothing has ended under that name. Each job
-- moves onward; what is inserted is what moved. Nothing moves unless every lease is ours at its epoch; the presence is held
-- already, so nobody gives one up before this is committed. A job of which a run was started by hand since plan looked
-- stays, also if that was after this statement began. $24: runs with lower ids may have been in the way of a late slot, and
-- have ended since. All other views take the slow path. (Not EXISTS: for that the planner may read the whole table once
-- instead of a row at a time.)
WITH me AS MATERIALIZED (
    SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL),
held AS MATERIALIZED (
    SELECT count(*) AS shards
    FROM leases l JOIN unnest($2::smallint[], $3::bigint[]) w(shard, epoch) ON l.shard = w.shard AND l.epoch = w.epoch
    WHERE l.holder = (SELECT no FROM me)),
moved AS (
    UPDATE jobs j SET next_slot = n.next_slot, due_at = n.due_next, slot_last = n.slot, state = n.state,
                      state_at = coalesce(n.state_at, j.state_at), runs_made = n.runs_made
    FROM unnest($5::uuid[], $6::smallint[], $7::integer[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
                $12::smallint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::uuid[], $17::bigint[],
                $18::smallint[], $19::boolean[], $20::boolean[], $21::boolean[], $22::bigint[], $23::integer[],
                $24::uuid[])
         n(job, shard, version, was, slot, next_slot, due_next, state, state_at, runs_were, runs_made, run, due_at, lane,
           claim, needs_runs, exclusive, slot_last, manual_runs, late)
    WHERE (SELECT shards FROM held) = $4::bigint
      AND j.id = ANY(ARRAY[n.job]) AND j.version = n.version AND j.next_slot = n.was AND j.state = {JobState::Active}
      AND j.runs_made = n.runs_were AND coalesce(j.manual_runs, 0) = n.manual_runs AND (n.slot_last IS NULL OR j.slot_last = n.slot_last)
      AND (NOT n.needs_runs OR (SELECT 1 FROM live o WHERE o.job = n.job LIMIT 1) IS NULL)
      AND (n.version = 1 OR (SELECT 1 FROM history h WHERE h.id = n.run LIMIT 1) IS NULL)
      AND (n.late IS NULL OR (
          SELECT 1 FROM (
              SELECT h.dispatched_at, h.settled_at FROM history h
              WHERE (h.job, h.id) >= (n.job, $25::uuid) AND (h.job, h.id) < (n.job, n.late)
                AND h.id >= $25::uuid AND h.id < $26::uuid AND h.state <> {RunState::Skipped}
              ORDER BY h.job DESC, h.id DESC LIMIT $27) h
          WHERE h.dispatched_at < n.due_at AND h.settled_at > n.due_at LIMIT 1) IS NULL)
    RETURNING n.run, n.job, j.tenant, j.version, n.shard, n.due_at, n.lane, n.claim, n.exclusive),
inserted AS (
    INSERT INTO live (id, job, tenant, due_at, version, attempt, lost, claim, shard, kind, lane, state, waiting, exclusive)
    SELECT run, job, tenant, due_at, version, 1, 0, CASE WHEN claim THEN (SELECT no FROM me) END, shard, {RunKind::Slot},
           lane, {RunState::Ready}, false, exclusive
    FROM moved)
SELECT array_agg(run) FROM moved
