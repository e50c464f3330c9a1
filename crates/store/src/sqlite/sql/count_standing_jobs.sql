-- count_standing: jobs that are not active, of so many of each state at most; each state by its own index.
SELECT tenant, state, count(*) FROM (
    SELECT * FROM (SELECT tenant, state FROM jobs INDEXED BY jobs_rare
                   WHERE state = 1 /* JobState::Paused */ AND (state = 1 /* JobState::Paused */ OR state > 2) LIMIT ?1)
    UNION ALL
    SELECT * FROM (SELECT tenant, state FROM jobs INDEXED BY jobs_rare
                   WHERE state = 3 /* JobState::Invalid */ AND (state = 1 /* JobState::Paused */ OR state > 2) LIMIT ?1)
    UNION ALL
    SELECT * FROM (SELECT tenant, state FROM jobs INDEXED BY jobs_finished WHERE state = 2 /* JobState::Finished */ LIMIT ?1))
GROUP BY tenant, state
