-- list_jobs: jobs with a label, newest first. Further labels are checked by the caller.
SELECT l.job FROM labels l JOIN jobs j ON j.id = l.job
WHERE l.tenant = ?1 AND l.name = ?5 AND l.value = ?6 AND l.job < ?2 AND (?3 >> j.state) & 1
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM defs d WHERE d.id = l.job AND instr(lower(d.key), ?4)))
ORDER BY l.job DESC
