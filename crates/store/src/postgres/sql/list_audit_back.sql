-- list_audit: of all tenants, newest first.
SELECT seq, at, tenant, actor, key, address, request, action, subject, before, after
FROM audit WHERE seq > $1 AND seq < $2 ORDER BY seq DESC LIMIT $3
