-- settle, cancel_run, withdraw, change_job: runs that waited may start.
UPDATE live SET waiting = false WHERE id = ANY($1::uuid[])
