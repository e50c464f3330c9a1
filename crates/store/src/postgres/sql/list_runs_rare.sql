-- list_runs: runs that ended in other ways than success, newest first (one that was decided again is alive, and not
-- listed here): from an index of their own, state by state.
SELECT f.*
FROM unnest($3::smallint[]) w(state)
CROSS JOIN LATERAL (
    SELECT h.id, h.job, h.tenant, h.kind, h.slot, h.replay_of, h.due_at, h.lane, h.state, h.reason, h.attempt, h.lost,
           h.version, h.dispatched_at, h.settled_at, h.outcome, h.status, h.error, h.output, h.stretch_last,
           h.stretch_count, h.payload, h.attempts, h.note, h.actor
    FROM history h
    WHERE h.state = w.state AND h.state <> 3 AND h.tenant = $1 AND h.id < $2
      AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
    ORDER BY h.id DESC LIMIT $4) f
WHERE $5::uuid IS NULL
ORDER BY f.id DESC LIMIT $4
