-- fire, start_run, change_job: a job's live runs, oldest first.
SELECT id FROM live WHERE job = ?1 ORDER BY id
