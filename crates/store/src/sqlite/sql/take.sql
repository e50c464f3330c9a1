-- take: runs of one lane that nobody holds, the earliest first. Shards are picked by the caller, from the job.
SELECT id, job FROM live INDEXED BY live_due
WHERE claim IS NULL AND waiting = 0 AND due_at <= ?1 AND lane = ?2
ORDER BY due_at, id
