-- retain: deleted jobs whose runs have ended.
SELECT id FROM jobs INDEXED BY jobs_rare
WHERE state = 4 /* JobState::Deleted */ AND (state = 1 /* JobState::Paused */ OR state > 2)
  AND NOT EXISTS (SELECT 1 FROM live WHERE job = jobs.id)
ORDER BY id LIMIT ?1
