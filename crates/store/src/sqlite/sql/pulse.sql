-- pulse: the oldest slot and the oldest run that nobody holds.
SELECT (SELECT min(due_at) FROM jobs INDEXED BY jobs_due WHERE due_at IS NOT NULL),
       (SELECT min(due_at) FROM live INDEXED BY live_due WHERE claim IS NULL AND waiting = 0)
