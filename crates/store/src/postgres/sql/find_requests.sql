-- create_jobs: whether requests were answered before.
SELECT i.tenant, i.key, i.digest, i.job
FROM unnest($1::uuid[], $2::text[]) n(tenant, key) JOIN idempotency i ON i.tenant = n.tenant AND i.key = n.key
