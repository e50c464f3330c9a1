-- list_runs: runs of a day of history that ended in one way other than success, newest first. Asked once
-- for each such state: within one, the index is in the order of ids.
SELECT id FROM history_{day} WHERE state = ?3 AND state <> 3 AND tenant = ?1 AND id < ?2
ORDER BY id DESC LIMIT ?4
