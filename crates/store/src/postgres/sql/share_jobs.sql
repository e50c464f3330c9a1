-- claim: jobs as they stand, and as they stay until the claim is written.
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs,
       d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc,
       CASE WHEN octet_length(d.payload) <= $2::integer THEN d.payload END, d.calendars,
       CASE WHEN octet_length(d.payload) > $2::integer THEN octet_length(d.payload) END
FROM jobs j JOIN defs d ON d.id = ANY(ARRAY[j.id]) AND d.tenant = ANY(ARRAY[j.tenant])
WHERE j.id = ANY($1::uuid[])
ORDER BY coalesce(j.id, j.id)
FOR SHARE OF j, d
