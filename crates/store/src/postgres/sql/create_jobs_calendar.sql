-- create_jobs, change_job: jobs name calendars.
INSERT INTO calendar_jobs (tenant, name, job) SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[])
ON CONFLICT DO NOTHING
