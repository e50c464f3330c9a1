-- fire, settle and whatever else changes a job: where it stands, locked in the order of ids.
SELECT {standing}
FROM jobs j
WHERE j.id = ANY($1::uuid[])
ORDER BY coalesce(j.id, j.id)
FOR NO KEY UPDATE
