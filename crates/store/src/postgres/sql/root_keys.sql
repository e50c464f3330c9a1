-- create_first_key, revoke_key: of all tenants; there are few, and they are read seldom.
SELECT id, tenant, role, label, digest, created_at, expires_at, last_used_at, revoked_at, queues FROM keys WHERE role = $1
