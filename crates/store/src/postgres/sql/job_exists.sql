-- create_jobs, claim_due: which jobs are there.
SELECT id FROM jobs WHERE id = ANY($1::uuid[])
