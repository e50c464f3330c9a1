-- create_jobs: what makes requests repeatable.
INSERT INTO idempotency (tenant, key, digest, job, created_at)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::uuid[], $5::bigint[])
