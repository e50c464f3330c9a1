-- create_jobs: whether an id is taken.
SELECT 1 FROM jobs WHERE id = ?1
