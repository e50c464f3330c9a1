-- get_job, and every method that answers jobs: one job by its id.
SELECT j.id, j.tenant, j.state, j.version, j.next_slot, j.slot_last, j.state_at,
       d.created_at, d.updated_at, d.note, d.key, d.doc, d.payload, j.runs_made, d.paused_by, d.calendars,
       j.catch_up_to
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.id = ?1
