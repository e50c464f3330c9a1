-- retain: jobs that finished long ago and have no run alive, the oldest first.
SELECT id FROM jobs INDEXED BY jobs_finished
WHERE state = 2 /* JobState::Finished */ AND state_at <= ?1 AND NOT EXISTS (SELECT 1 FROM live WHERE job = jobs.id)
ORDER BY state_at LIMIT ?2
