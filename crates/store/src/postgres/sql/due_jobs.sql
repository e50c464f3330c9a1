-- due_jobs: what is due, in the order of plan.
SELECT {job $5}, j.due_at
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.due_at IS NOT NULL AND (j.due_at, j.id) > ($1, $2) AND j.due_at <= $3
ORDER BY j.due_at, j.id LIMIT $4
