-- retain: likewise.
UPDATE defs SET gone = 1 WHERE id = ?1
