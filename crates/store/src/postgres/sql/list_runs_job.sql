-- list_runs: runs of one job, newest first (one that was decided again is alive, and not listed here).
SELECT h.id, h.job, h.tenant, h.kind, h.slot, h.replay_of, h.due_at, h.lane, h.state, h.reason, h.attempt, h.lost,
       h.version, h.dispatched_at, h.settled_at, h.outcome, h.status, h.error, h.output, h.stretch_last, h.stretch_count,
       h.payload, h.attempts, h.note, h.actor
FROM history h
WHERE h.job = $5 AND h.tenant = $1 AND h.id < $2 AND h.state = ANY($3::smallint[])
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
ORDER BY h.id DESC LIMIT $4
