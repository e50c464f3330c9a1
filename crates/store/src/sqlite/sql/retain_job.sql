-- retain: a job goes, if it is still over.
DELETE FROM jobs WHERE id = ?1 AND (state = 4 /* JobState::Deleted */ OR state = 2 /* JobState::Finished */ AND state_at <= ?2)
  AND NOT EXISTS (SELECT 1 FROM live WHERE job = ?1)
