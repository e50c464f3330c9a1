-- list_jobs: when few of the newest are active, all that are active are read from the index of what is due,
-- and the newest are sorted out.
SELECT j.id FROM jobs j INDEXED BY jobs_due
WHERE j.due_at IS NOT NULL AND j.id < ?2 AND (SELECT t.tenant FROM jobs t WHERE t.id = j.id) = ?1
ORDER BY j.id DESC LIMIT ?3
