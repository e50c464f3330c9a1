-- create_jobs, change_job, retain: what tenants have more, or less, than before.
INSERT INTO tenant_use AS u (tenant, part, jobs, payload_bytes)
SELECT tenant, pg_backend_pid() % 16, jobs, bytes FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) n(tenant, jobs, bytes)
ON CONFLICT (tenant, part) DO UPDATE SET jobs = u.jobs + excluded.jobs,
                                         payload_bytes = u.payload_bytes + excluded.payload_bytes
