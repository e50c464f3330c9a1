-- get_version: the definition that stood at a version; one that only stood elsewhere is that of the next that was kept.
SELECT version, updated_at, ended_at, ended_by, key, doc, payload, calendars
FROM job_versions WHERE job = ?1 AND version >= ?2 ORDER BY version LIMIT 1
