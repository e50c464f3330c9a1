-- list_runs: live runs, newest first; ?3 has a bit for every state that is wanted.
SELECT id FROM live WHERE tenant = ?1 AND id < ?2 AND id >= ?6 AND (?3 >> state) & 1
  AND (?7 IS NULL OR waiting > 0 AND (?7 >> coalesce(wait_reason, 0)) & 1)
ORDER BY id DESC LIMIT ?4
