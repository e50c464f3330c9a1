-- list_runs: live runs of one job, newest first.
SELECT id FROM live WHERE job = ?5 AND tenant = ?1 AND id < ?2 AND (?3 >> state) & 1 ORDER BY id DESC LIMIT ?4
