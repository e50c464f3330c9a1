-- get_run, list_runs: one run of a day of history.
SELECT id, job, tenant, kind, slot, replay_of, due_at, lane, state, reason, attempt, lost, version,
       dispatched_at, settled_at, outcome, status, error, output, stretch_last, stretch_count, payload, attempts,
       note, actor
FROM history_{day}
WHERE id = ?1
