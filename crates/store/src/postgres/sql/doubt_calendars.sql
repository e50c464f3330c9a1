-- create_jobs, change_job: a job was aimed by another version of these, and is to be aimed anew.
UPDATE calendars c SET applied = 0 FROM unnest($1::uuid[], $2::text[]) n(tenant, name)
WHERE c.tenant = n.tenant AND c.name = n.name
