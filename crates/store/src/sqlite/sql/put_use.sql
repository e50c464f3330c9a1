-- create_jobs, change_job, retain: what a tenant has now.
INSERT INTO tenant_use (tenant, jobs, payload_bytes) VALUES (?1, ?2, ?3)
ON CONFLICT (tenant) DO UPDATE SET jobs = excluded.jobs, payload_bytes = excluded.payload_bytes
