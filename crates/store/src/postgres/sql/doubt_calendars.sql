-- create_jobs, change_job: so many jobs were scheduled by another version of these, and are to be rescheduled.
UPDATE calendars c SET applied = 0, doubts = c.doubts + n.times
FROM unnest($1::uuid[], $2::text[], $3::integer[]) n(tenant, name, times)
WHERE c.tenant = n.tenant AND c.name = n.name
