-- retain: requests that were answered long ago.
DELETE FROM idempotency i
USING (SELECT tenant, key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) o
WHERE i.tenant = o.tenant AND i.key = o.key
