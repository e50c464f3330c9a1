-- tenant_use, create_jobs, change_job: what tenants may have, and what they have.
SELECT n.id, t.jobs_max, t.payload_bytes_max, u.jobs, u.payload_bytes
FROM unnest($1::uuid[]) n(id)
LEFT JOIN tenants t ON t.id = n.id
CROSS JOIN LATERAL (SELECT sum(jobs)::bigint AS jobs, sum(payload_bytes)::bigint AS payload_bytes
                    FROM tenant_use WHERE tenant = n.id) u
