-- create_jobs: which ids are taken.
SELECT id FROM jobs WHERE id = ANY($1::uuid[])
