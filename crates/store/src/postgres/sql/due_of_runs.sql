-- due_of: runs of some jobs that anyone may claim, oldest first. (Written like the other.)
SELECT due_at, id, job, tenant, state FROM live
WHERE job = ANY($1::uuid[]) AND coalesce(claim, 0) = 0 AND NOT waiting AND coalesce(due_at <= $2, false)
ORDER BY job, id
