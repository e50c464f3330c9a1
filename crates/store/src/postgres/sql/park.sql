-- park: active jobs that cannot be read leave the plan.
UPDATE jobs j SET state = {JobState::Invalid}, version = j.version + 1, next_slot = NULL, due_at = NULL, state_at = $2
FROM unnest($1::uuid[]) n(id)
WHERE j.id = ANY(ARRAY[n.id]) AND j.state = {JobState::Active}
RETURNING j.id, j.tenant
