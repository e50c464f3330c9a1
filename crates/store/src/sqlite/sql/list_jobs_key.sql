-- list_jobs: when few of the newest have the part of the key, all keys are read from their index, which is
-- small beside the jobs, and the newest of those that fit are sorted out. Deleted jobs are not in it.
SELECT d.id FROM defs d INDEXED BY defs_key
WHERE d.tenant = ?1 AND d.key IS NOT NULL AND d.gone = 0 AND d.id < ?2 AND instr(lower(d.key), ?4)
  AND (SELECT (?3 >> j.state) & 1 FROM jobs j WHERE j.id = d.id)
ORDER BY d.id DESC LIMIT ?5
