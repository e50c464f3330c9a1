-- find_job, create_jobs, change_job: who has a key.
SELECT id FROM defs WHERE tenant = ?1 AND key = ?2 AND gone = 0
