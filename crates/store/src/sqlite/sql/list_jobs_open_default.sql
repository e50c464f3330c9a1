-- list_jobs: the same of the tenant that is always there, where there are others.
SELECT j.id FROM jobs j
WHERE j.tenant = 0 AND j.tenant = ?1 AND j.state <> 2 /* JobState::Finished */ AND j.id < ?2 AND (?3 >> j.state) & 1
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM defs d WHERE d.id = j.id AND instr(lower(d.key), ?4)))
ORDER BY j.id DESC LIMIT ?5
