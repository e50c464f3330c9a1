-- get_job, and every method that answers jobs: one job by its id. A payload of more than ?2 bytes is left out, and its size
-- is said instead.
SELECT j.id, j.tenant, j.state, j.version, j.next_slot, j.slot_last, j.state_at,
       d.created_at, d.updated_at, d.note, d.key, d.doc,
       CASE WHEN length(d.payload) <= ?2 THEN d.payload END, j.runs_made, d.paused_by, d.calendars, j.catch_up_to,
       CASE WHEN length(d.payload) > ?2 THEN length(d.payload) END, j.manual_runs, d.owner, j.failures, d.once_until
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.id = ?1
