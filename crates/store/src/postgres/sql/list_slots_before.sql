-- list_slots: the last entry about a job's slots before a moment.
SELECT h.id, h.job, h.tenant, h.kind, h.slot, h.replay_of, h.due_at, h.lane, h.state, h.reason, h.attempt, h.lost,
       h.version, h.dispatched_at, h.settled_at, h.outcome, h.status, h.error, h.output, h.stretch_last, h.stretch_count,
       h.payload, h.attempts, h.note, h.actor
FROM history h
WHERE h.job = $1 AND h.tenant = $2 AND h.id < $3 AND h.kind = 0 ORDER BY h.id DESC LIMIT 1
