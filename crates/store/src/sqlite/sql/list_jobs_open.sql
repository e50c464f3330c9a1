-- list_jobs: jobs that are not finished, of any tenant but the one that is always there, newest first; ?3 has a bit for every state that is
-- wanted, ?4 is a part of the key or nothing.
SELECT j.id FROM jobs j INDEXED BY jobs_open
WHERE j.tenant = ?1 AND j.tenant <> 0 AND j.state <> 2 /* JobState::Finished */ AND j.id < ?2 AND (?3 >> j.state) & 1
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM defs d WHERE d.id = j.id AND instr(lower(d.key), ?4)))
ORDER BY j.id DESC LIMIT ?5
