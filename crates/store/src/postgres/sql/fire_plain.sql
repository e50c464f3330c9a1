-- fire: the same for most views: not edited within a lead of the slot, so that history need not be read; their runs not
-- counted, due when their slot is, and their ends of no meaning to others; claimed by the caller. One that has no next
-- slot is finished.
WITH me AS MATERIALIZED (
    SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL),
held AS MATERIALIZED (
    SELECT count(*) AS shards
    FROM leases l JOIN unnest($2::smallint[], $3::bigint[]) w(shard, epoch) ON l.shard = w.shard AND l.epoch = w.epoch
    WHERE l.holder = (SELECT no FROM me)),
moved AS (
    UPDATE jobs j SET next_slot = n.next_slot, due_at = n.next_slot, slot_last = n.slot,
                      state = CASE WHEN n.next_slot IS NULL THEN {JobState::Finished} ELSE {JobState::Active} END,
                      state_at = coalesce(n.finished_at, j.state_at)
    FROM unnest($5::uuid[], $6::integer[], $7::bigint[], $8::bigint[], $9::bigint[], $10::uuid[], $11::smallint[],
                $12::boolean[], $13::integer[], $14::uuid[])
         n(job, version, slot, next_slot, finished_at, run, lane, needs_runs, manual_runs, late)
    WHERE (SELECT shards FROM held) = $4::bigint
      AND j.id = ANY(ARRAY[n.job]) AND j.version = n.version AND j.next_slot = n.slot AND j.state = {JobState::Active} AND j.runs_made = 0
      AND coalesce(j.manual_runs, 0) = n.manual_runs
      AND (NOT n.needs_runs OR (SELECT 1 FROM live o WHERE o.job = n.job LIMIT 1) IS NULL)
      AND (n.late IS NULL OR (
          SELECT 1 FROM (
              SELECT h.dispatched_at, h.settled_at FROM history h
              WHERE (h.job, h.id) >= (n.job, $15::uuid) AND (h.job, h.id) < (n.job, n.late)
                AND h.id >= $15::uuid AND h.id < $16::uuid AND h.state <> {RunState::Skipped}
              ORDER BY h.job DESC, h.id DESC LIMIT $17) h
          WHERE h.dispatched_at < n.slot AND h.settled_at > n.slot LIMIT 1) IS NULL)
    RETURNING n.run, j.id, j.tenant, j.version, j.shard, n.slot, n.lane),
inserted AS (
    INSERT INTO live (id, job, tenant, due_at, version, attempt, lost, claim, shard, kind, lane, state, waiting, exclusive)
    SELECT run, id, tenant, slot, version, 1, 0, (SELECT no FROM me), shard, {RunKind::Slot}, lane, {RunState::Ready},
           false, false
    FROM moved)
SELECT array_agg(run) FROM moved
