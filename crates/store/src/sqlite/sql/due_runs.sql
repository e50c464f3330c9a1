-- due_runs: what anyone may claim, in the order of plan. Shards are picked by the caller, from the job.
SELECT due_at, id, job, tenant, state FROM live INDEXED BY live_due
WHERE claim IS NULL AND waiting = 0 AND (due_at, id) > (?1, ?2) AND due_at <= ?3
ORDER BY due_at, id
