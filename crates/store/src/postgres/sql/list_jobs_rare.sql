-- list_jobs: jobs in rare states only, newest first, from their own index.
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs,
       d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc, d.payload, d.calendars, NULL::integer
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.state IN (1, 3, 4) AND j.state = ANY($3::smallint[]) AND j.tenant = $1 AND j.id < $2
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY j.id DESC LIMIT $5
