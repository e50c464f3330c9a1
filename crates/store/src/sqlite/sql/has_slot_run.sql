-- change_job, and the end of a run: whether a run of one of a job's slots lives.
SELECT 1 FROM live WHERE job = ?1 AND kind = 0 LIMIT 1
