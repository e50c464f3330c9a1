-- keys_since: what was created or revoked after a change.
SELECT id, tenant, role, label, digest, created_at, expires_at, last_used_at, revoked_at, queues FROM keys WHERE change > $1
