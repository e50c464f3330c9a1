-- change_job, retain: jobs' labels go.
DELETE FROM labels WHERE job = ANY($1::uuid[])
