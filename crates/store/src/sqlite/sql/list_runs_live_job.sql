-- list_runs: live runs of one job, newest first.
SELECT id FROM live WHERE job = ?5 AND tenant = ?1 AND id < ?2 AND id >= ?6 AND (?3 >> state) & 1
  AND (?7 IS NULL OR waiting > 0 AND (?7 >> coalesce(wait_reason, 0)) & 1)
ORDER BY id DESC LIMIT ?4
