-- list_audit: of all tenants, oldest first.
SELECT seq, {audit}
FROM audit WHERE seq > ?1 AND seq < ?2 ORDER BY seq LIMIT ?3
