-- change_job, retain: jobs name no calendar any more.
DELETE FROM calendar_jobs WHERE job = ANY($1::uuid[])
