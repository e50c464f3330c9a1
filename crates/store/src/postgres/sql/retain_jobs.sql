-- retain: jobs that are over, of which nothing lives; locked, in the order of ids. Deleted ones first.
SELECT j.id FROM jobs j
WHERE j.id = ANY(ARRAY(
    (SELECT d.id FROM jobs d WHERE d.state = {JobState::Deleted} AND d.state IN ({JobState::Paused}, {JobState::Invalid}, {JobState::Deleted})
        AND NOT EXISTS (SELECT 1 FROM live WHERE live.job = d.id) ORDER BY d.id LIMIT $2)
    UNION ALL
    (SELECT f.id FROM jobs f WHERE f.state = {JobState::Finished} AND f.state_at <= $1
        AND NOT EXISTS (SELECT 1 FROM live WHERE live.job = f.id) ORDER BY f.state_at, f.id LIMIT $2)
    LIMIT $2))
  AND (j.state = {JobState::Deleted} OR j.state = {JobState::Finished} AND j.state_at <= $1)
ORDER BY coalesce(j.id, j.id) FOR UPDATE
