-- claim_due: jobs as they stand, and as they stay until the claim is written. Their runs are locked already, which is the wrong
-- way round: so this waits for nobody, and a job that someone is changing is left out with its runs.
SELECT {job $2}
FROM jobs j JOIN defs d ON d.id = ANY(ARRAY[j.id]) AND d.tenant = ANY(ARRAY[j.tenant])
WHERE j.id = ANY($1::uuid[])
ORDER BY coalesce(j.id, j.id)
FOR SHARE OF j, d SKIP LOCKED
