-- retain: and what only edits change of it.
DELETE FROM defs WHERE id = ?1
