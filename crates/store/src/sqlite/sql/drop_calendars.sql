-- change_job, retain: a job names no calendar any more.
DELETE FROM calendar_jobs WHERE job = ?1 RETURNING tenant, name
