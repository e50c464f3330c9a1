-- retain: requests that were answered long ago.
DELETE FROM idempotency WHERE (tenant, key) IN
    (SELECT tenant, key FROM idempotency WHERE created_at <= ?1 ORDER BY created_at LIMIT ?2)
