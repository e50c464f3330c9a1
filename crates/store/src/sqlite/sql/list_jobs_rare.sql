-- list_jobs: jobs in one of the rare states, newest first. Run once for each such state.
SELECT j.id FROM jobs j INDEXED BY jobs_rare
WHERE j.state = ?3 AND (j.state = 1 /* JobState::Paused */ OR j.state > 2) AND j.tenant = ?1 AND j.id < ?2
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM defs d WHERE d.id = j.id AND instr(lower(d.key), ?4)))
ORDER BY j.id DESC LIMIT ?5
