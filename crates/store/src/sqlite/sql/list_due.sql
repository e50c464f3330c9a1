-- list_due: whether a planned job is of the tenant that is read for. Which are planned is in `due_jobs.sql`.
SELECT 1 FROM jobs WHERE id = ?1 AND tenant = ?2
