-- find_audit: those of one gap.
SELECT seq, at, tenant, actor, key, address, request, action, subject, before, after
FROM audit WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq LIMIT ?3
