-- list_audit: of all tenants, newest first.
SELECT seq, {audit}
FROM audit WHERE seq > ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3
