-- delete_tenant: all of its keys, once.
UPDATE keys SET revoked_at = $2, change = $3 WHERE tenant = $1 AND revoked_at IS NULL
