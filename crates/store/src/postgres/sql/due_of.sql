-- due_of: those of some jobs that are due. (Written so that only the ids can be looked up: many more may be due.)
SELECT {job $3}
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.id = ANY($1::uuid[]) AND coalesce(j.due_at <= $2, false)
ORDER BY j.id
