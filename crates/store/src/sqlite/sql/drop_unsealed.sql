-- drop_unsealed: of the oldest entries after the last segment, those that were kept long enough.
DELETE FROM audit
WHERE at <= ?3 AND seq IN (SELECT seq FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2)
RETURNING seq
