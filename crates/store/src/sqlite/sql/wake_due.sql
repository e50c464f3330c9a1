-- wake_due: runs that have waited as long as they may. Shards are picked by the caller, from the job.
SELECT id, job FROM live INDEXED BY live_wait WHERE wait_reason IS NOT NULL AND wait_until <= ?1 ORDER BY wait_until
