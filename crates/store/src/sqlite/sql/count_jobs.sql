-- count_jobs: the states of a page of jobs, by id.
SELECT id, state FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?2
