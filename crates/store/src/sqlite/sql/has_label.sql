-- list_jobs: whether a job has a label.
SELECT 1 FROM labels WHERE tenant = ?1 AND name = ?2 AND value = ?3 AND job = ?4
