-- count_runs: what a counter has of a tenant's day so far.
INSERT INTO run_counts (day, tenant, counter, runs) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (day, tenant, counter) DO UPDATE SET runs = excluded.runs
