-- create_jobs, take: which jobs are there.
SELECT id FROM jobs WHERE id = ANY($1::uuid[])
