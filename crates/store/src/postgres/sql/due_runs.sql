-- due_runs: what anyone may claim, in the order of plan.
SELECT due_at, id, job, tenant, state FROM live
WHERE claim IS NULL AND NOT waiting AND (due_at, id) > ($1, $2) AND due_at <= $3
  AND ($5::smallint[] IS NULL OR shard = ANY($5))
ORDER BY due_at, id LIMIT $4
