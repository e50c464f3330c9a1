-- retain: and its versions.
DELETE FROM job_versions WHERE job = ?1
