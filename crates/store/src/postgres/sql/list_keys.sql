-- list_keys: newest first.
SELECT id, tenant, role, label, digest, created_at, expires_at, last_used_at, revoked_at, queues FROM keys WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3
