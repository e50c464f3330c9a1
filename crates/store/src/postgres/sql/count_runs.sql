-- count_runs: what a counter has of tenants' days so far.
INSERT INTO run_counts (day, tenant, counter, runs)
SELECT n.day, n.tenant, $3, n.runs FROM unnest($1::bigint[], $2::uuid[], $4::bigint[]) n(day, tenant, runs)
ON CONFLICT (day, tenant, counter) DO UPDATE SET runs = excluded.runs
