-- retain: a stretch of jobs, by id; those that finished long ago and have no run alive are to go.
SELECT id, state = 2 AND state_at <= ?2 AND NOT EXISTS (SELECT 1 FROM live WHERE job = jobs.id)
FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?3
