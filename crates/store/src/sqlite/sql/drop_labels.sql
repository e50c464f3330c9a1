-- change_job, retain: a job's labels go.
DELETE FROM labels WHERE job = ?1
