-- get_key, revoke_key: one of a tenant.
SELECT id, tenant, role, label, digest, created_at, expires_at, last_used_at, revoked_at, queues FROM keys WHERE id = ?2 AND tenant = ?1
