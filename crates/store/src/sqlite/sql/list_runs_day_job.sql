-- list_runs: runs of one job on a day of history, newest first.
SELECT id FROM history_{day} WHERE job = ?5 AND tenant = ?1 AND id < ?2 AND (?3 >> state) & 1
ORDER BY id DESC LIMIT ?4
