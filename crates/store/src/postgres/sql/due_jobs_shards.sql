-- due_jobs: the same of some shards only.
SELECT {job $6}, j.due_at
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.due_at IS NOT NULL AND (j.due_at, j.id) > ($1, $2) AND j.due_at <= $3 AND j.shard = ANY($5::smallint[])
ORDER BY j.due_at, j.id LIMIT $4
