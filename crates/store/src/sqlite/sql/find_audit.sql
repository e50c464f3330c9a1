-- find_audit: those of one gap.
SELECT seq, {audit}
FROM audit WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq LIMIT ?3
