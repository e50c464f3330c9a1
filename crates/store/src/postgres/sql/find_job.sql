-- find_job: who has a key.
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs,
       d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc, d.payload, d.calendars, NULL::integer
FROM jobs j JOIN defs d ON d.id = j.id
WHERE d.tenant = $1 AND d.key = $2 AND NOT d.gone
