-- list_due: what is planned, in the order of plan, without its definition: the index alone has it.
SELECT due_at, id FROM jobs INDEXED BY jobs_due
WHERE due_at IS NOT NULL AND (due_at, id) > (?1, ?2) AND due_at <= ?3
ORDER BY due_at, id
