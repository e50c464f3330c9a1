-- retain: they go, if still nothing of them lives.
DELETE FROM jobs j WHERE j.id = ANY($1::uuid[]) AND NOT EXISTS (SELECT 1 FROM live WHERE live.job = j.id)
RETURNING j.id
