-- find_job: who has a key.
SELECT {job}
FROM jobs j JOIN defs d ON d.id = j.id
WHERE d.tenant = $1 AND d.key = $2 AND NOT d.gone
