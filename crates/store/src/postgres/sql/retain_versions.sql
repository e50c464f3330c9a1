-- retain: and their versions.
DELETE FROM job_versions WHERE job = ANY($1::uuid[])
