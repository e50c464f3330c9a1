-- runs_of_day: what all counters have of a tenant's day.
SELECT sum(runs)::bigint FROM run_counts WHERE day = $1 AND tenant = $2
