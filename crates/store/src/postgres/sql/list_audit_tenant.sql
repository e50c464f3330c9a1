-- list_audit: of one tenant, oldest first.
SELECT seq, {audit}
FROM audit WHERE tenant = $4 AND seq > $1 AND seq < $2 ORDER BY seq LIMIT $3
