-- settle, cancel_run, withdraw, change_job: the oldest waiting run of a job may start when no other moves.
UPDATE live SET waiting = 0
WHERE id = (SELECT min(id) FROM live WHERE job = ?1 AND waiting = 1)
  AND NOT EXISTS (SELECT 1 FROM live WHERE job = ?1 AND waiting = 0)
RETURNING id
