-- list_audit: of the tenant that is always there, oldest first. While it is the only one, all entries are its own.
SELECT seq, {audit}
FROM audit WHERE tenant = 0 AND tenant = ?4 AND seq > ?1 AND seq < ?2 ORDER BY seq LIMIT ?3
