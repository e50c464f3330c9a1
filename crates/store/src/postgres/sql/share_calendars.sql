-- create_jobs, change_job: calendars that jobs are about to name, as they stand and stay until that is written.
SELECT c.tenant, c.name, c.version
FROM unnest($1::uuid[], $2::text[]) n(tenant, name) JOIN calendars c ON c.tenant = n.tenant AND c.name = n.name
ORDER BY c.tenant, c.name FOR KEY SHARE OF c
