-- list_audit: of any other tenant, oldest first.
SELECT seq, {audit}
FROM audit WHERE tenant = ?4 AND tenant <> 0 AND seq > ?1 AND seq < ?2 ORDER BY seq LIMIT ?3
