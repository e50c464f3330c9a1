-- retain: likewise.
UPDATE defs SET gone = true WHERE id = $1
