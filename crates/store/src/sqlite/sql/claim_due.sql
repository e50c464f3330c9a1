-- claim_due: the views in which a run of one lane is free, does not wait and is due, the earliest first. Shards are picked by the caller, from the job.
SELECT id, job FROM live INDEXED BY live_due
WHERE claim IS NULL AND waiting = 0 AND due_at >= ?1 AND due_at <= ?2 AND lane = ?3
ORDER BY due_at, id
