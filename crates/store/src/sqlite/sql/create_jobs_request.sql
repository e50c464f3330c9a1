-- create_jobs: what makes a request repeatable.
INSERT INTO idempotency (tenant, key, digest, job, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
