-- count_runs: tenants that have the quota, and what the other counters have of each today.
SELECT t.id, t.name, t.runs_day_max,
       (SELECT sum(c.runs)::bigint FROM run_counts c WHERE c.day = $1 AND c.tenant = t.id AND c.counter <> $2)
FROM tenants t WHERE t.runs_day_max IS NOT NULL
