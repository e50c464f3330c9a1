-- list_slots: what came of a job's slots, oldest first (one that was decided again is alive, and not listed here).
SELECT h.id, h.job, h.tenant, h.kind, h.slot, h.replay_of, h.due_at, h.lane, h.state, h.reason, h.attempt, h.lost,
       h.version, h.dispatched_at, h.settled_at, h.outcome, h.status, h.error, h.output, h.stretch_last, h.stretch_count,
       h.payload, h.attempts, h.note, h.actor
FROM history h
WHERE h.job = $1 AND h.tenant = $2 AND h.id >= $3 AND h.id < $4 AND h.kind = 0
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
ORDER BY h.id LIMIT $5
