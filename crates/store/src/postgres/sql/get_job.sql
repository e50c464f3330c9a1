-- get_job, and every method that answers jobs: jobs by their ids. A payload of more than $2 bytes is left out, and
-- its size is said instead.
SELECT {job $2}
FROM jobs j JOIN defs d ON d.id = ANY(ARRAY[j.id]) AND d.tenant = ANY(ARRAY[j.tenant])
WHERE j.id = ANY($1::uuid[])
ORDER BY coalesce(j.id, j.id)
