-- due_jobs: what is due, in the order of plan, each with its definition. Columns as `get_job.sql` has them, then when it is
-- due, and whether it has no definition. Shards are picked by the caller, from the id. A payload of more than ?4 bytes is
-- left out, and its size is said instead.
SELECT j.id, j.tenant, j.state, j.version, j.next_slot, j.slot_last, j.state_at,
       d.created_at, d.updated_at, d.note, d.key, d.doc,
       CASE WHEN length(d.payload) <= ?4 THEN d.payload END, j.runs_made, d.paused_by, d.calendars, j.catch_up_to,
       CASE WHEN length(d.payload) > ?4 THEN length(d.payload) END, j.manual_runs, d.owner, j.failures, d.once_until,
       j.due_at, d.id IS NULL
FROM jobs j INDEXED BY jobs_due LEFT JOIN defs d ON d.id = j.id
WHERE j.due_at IS NOT NULL AND (j.due_at, j.id) > (?1, ?2) AND j.due_at <= ?3
ORDER BY j.due_at, j.id
