-- get_run, list_runs: runs of history by id.
SELECT h.id, h.job, h.tenant, h.kind, h.slot, h.replay_of, h.due_at, h.lane, h.state, h.reason, h.attempt, h.lost,
       h.version, h.dispatched_at, h.settled_at, h.outcome, h.status, h.error, h.output, h.stretch_last, h.stretch_count,
       h.payload, h.attempts, h.note, h.actor
FROM unnest($1::uuid[]) n(id) JOIN history h ON h.id = n.id
