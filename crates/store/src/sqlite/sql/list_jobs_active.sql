-- list_jobs: when few of the newest are active, all that are active are read from the indexes of what is due and
-- of what rests, and the newest are sorted out.
SELECT a.id FROM (SELECT id FROM jobs INDEXED BY jobs_due WHERE due_at IS NOT NULL
                  UNION ALL
                  SELECT id FROM jobs INDEXED BY jobs_resting WHERE state = 0 /* JobState::Active */ AND next_slot IS NULL) a
WHERE a.id < ?2 AND (SELECT t.tenant FROM jobs t WHERE t.id = a.id) = ?1
ORDER BY a.id DESC LIMIT ?3
