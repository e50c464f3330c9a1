-- count_jobs: how many of a page of jobs, by id, are in each state, and the last of them all.
WITH page AS MATERIALIZED (SELECT id, state FROM jobs WHERE id > $1 ORDER BY id LIMIT $2)
SELECT state, count(*), (SELECT id FROM page ORDER BY id DESC LIMIT 1) FROM page GROUP BY state
