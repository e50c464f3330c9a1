-- due_jobs: what is due, in the order of plan. Shards are picked by the caller, from the id.
SELECT due_at, id FROM jobs INDEXED BY jobs_due
WHERE due_at IS NOT NULL AND (due_at, id) > (?1, ?2) AND due_at <= ?3
ORDER BY due_at, id
