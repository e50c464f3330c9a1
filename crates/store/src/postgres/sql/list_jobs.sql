-- list_jobs: newest first; $4 is a part of the key or nothing.
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs,
       d.created_at, d.updated_at, d.note, d.key, d.paused_by, d.doc, d.payload, d.calendars, NULL::integer
FROM defs d JOIN jobs j ON j.id = d.id
WHERE d.tenant = $1 AND d.id < $2 AND j.state = ANY($3::smallint[])
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY d.id DESC LIMIT $5
