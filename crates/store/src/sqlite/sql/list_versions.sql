-- list_versions: newest first.
SELECT version, updated_at, ended_at, ended_by, key, doc, payload, calendars
FROM job_versions WHERE job = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3
