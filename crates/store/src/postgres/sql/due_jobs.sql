-- due_jobs: what is due, in the order of plan: steps are read whole, by whoever has many shards. $5 is nothing for all of them.
SELECT {job $6}, j.due_at, j.shard
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.due_at IS NOT NULL AND ({place}, j.id) > ($1, $2) AND {place} <= $3
  AND j.due_at > $7 AND j.due_at <= $8 AND ($5::smallint[] IS NULL OR j.shard = ANY($5))
ORDER BY {place}, j.id LIMIT $4
