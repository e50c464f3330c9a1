-- create_jobs, change_job: labels.
INSERT INTO labels (tenant, name, value, job) SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[])
ON CONFLICT DO NOTHING
