-- put_seal: only the one after the last.
INSERT INTO audit_seals ({seal})
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
WHERE (SELECT coalesce(max(number), 0) FROM audit_seals) = ?1 - 1
