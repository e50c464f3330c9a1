-- tenant_use, create_jobs, change_job: what it has of what quotas bound.
SELECT jobs, payload_bytes FROM tenant_use WHERE tenant = ?1
