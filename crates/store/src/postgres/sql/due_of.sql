-- due_of: those of some jobs that are due. (Written so that only the ids can be looked up: many more may be due.)
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs,
       d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc,
       CASE WHEN octet_length(d.payload) <= $3::integer THEN d.payload END, d.calendars,
       CASE WHEN octet_length(d.payload) > $3::integer THEN octet_length(d.payload) END
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.id = ANY($1::uuid[]) AND coalesce(j.due_at <= $2, false)
ORDER BY j.id
