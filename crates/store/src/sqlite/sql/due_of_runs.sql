-- due_of: a job's runs that anyone may claim, oldest first.
SELECT due_at, id, job, tenant, state FROM live INDEXED BY live_job
WHERE job = ?1 AND claim IS NULL AND waiting = 0 AND due_at <= ?2
ORDER BY id
