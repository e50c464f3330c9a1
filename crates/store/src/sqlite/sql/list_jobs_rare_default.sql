-- list_jobs: jobs of the tenant that is always there in one of the rare states, newest first, where there are others. Read once for
-- each such state.
SELECT j.id FROM jobs j
WHERE j.tenant = 0 AND j.tenant = ?1 AND j.state = ?3 AND (j.state = 1 /* JobState::Paused */ OR j.state > 2) AND j.id < ?2
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM defs d WHERE d.id = j.id AND instr(lower(d.key), ?4)))
ORDER BY j.id DESC LIMIT ?5
