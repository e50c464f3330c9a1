-- count_standing: jobs that are not active, of so many of each state at most; each state in the order of its own index.
SELECT tenant, state, count(*) FROM (
    (SELECT tenant, state FROM jobs
     WHERE state IN ({JobState::Paused}, {JobState::Invalid}, {JobState::Deleted}) AND state = {JobState::Paused} ORDER BY state, id LIMIT $1)
    UNION ALL
    (SELECT tenant, state FROM jobs
     WHERE state IN ({JobState::Paused}, {JobState::Invalid}, {JobState::Deleted}) AND state = {JobState::Invalid} ORDER BY state, id LIMIT $1)
    UNION ALL
    (SELECT tenant, state FROM jobs WHERE state = {JobState::Finished} ORDER BY state_at, id LIMIT $1)) j
GROUP BY tenant, state
