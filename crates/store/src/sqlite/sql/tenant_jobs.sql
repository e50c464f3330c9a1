-- retain: jobs of a tenant that is being deleted, those that are marked as deleted left out or not (?2).
SELECT id FROM defs INDEXED BY defs_tenant WHERE tenant = ?1 AND tenant <> 0 AND (?2 OR gone = 0) ORDER BY id LIMIT ?3
