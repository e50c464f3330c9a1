-- list_audit: of any other tenant, newest first.
SELECT seq, {audit}
FROM audit WHERE tenant = ?4 AND tenant <> 0 AND seq > ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3
