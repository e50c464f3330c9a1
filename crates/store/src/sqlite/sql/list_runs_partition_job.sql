-- list_runs: runs of one job on a day of history, newest first (one that was decided again is alive, and not listed here).
SELECT id FROM history_{day} WHERE job = ?5 AND tenant = ?1 AND id < ?2 AND id >= ?6 AND (?3 >> state) & 1
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = history_{day}.id)
ORDER BY id DESC LIMIT ?4
