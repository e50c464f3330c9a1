-- due_jobs: what is due, in the order of plan.
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs,
       d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc,
       CASE WHEN octet_length(d.payload) <= $5::integer THEN d.payload END, d.calendars,
       CASE WHEN octet_length(d.payload) > $5::integer THEN octet_length(d.payload) END, j.due_at
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.due_at IS NOT NULL AND (j.due_at, j.id) > ($1, $2) AND j.due_at <= $3
ORDER BY j.due_at, j.id LIMIT $4
