-- create_jobs: whether a request was answered before.
SELECT digest, job FROM idempotency WHERE tenant = ?1 AND key = ?2
