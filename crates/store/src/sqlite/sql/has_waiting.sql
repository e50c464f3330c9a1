-- settle: whether a run of a job waits for another to end.
SELECT 1 FROM live INDEXED BY live_waiting WHERE job = ?1 AND waiting = 1 LIMIT 1
