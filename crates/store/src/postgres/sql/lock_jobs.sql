-- fire, settle and whatever else changes a job: where it stands, locked in the order of ids.
SELECT j.id, j.tenant, j.version, j.state, j.state_at, j.next_slot, j.slot_last, j.runs_made, j.catch_up_to, j.manual_runs
FROM jobs j
WHERE j.id = ANY($1::uuid[])
ORDER BY coalesce(j.id, j.id)
FOR NO KEY UPDATE
