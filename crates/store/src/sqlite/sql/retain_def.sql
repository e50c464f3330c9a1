-- retain: and what only edits change of it.
DELETE FROM defs WHERE id = ?1 RETURNING tenant, gone, coalesce(length(payload), 0)
