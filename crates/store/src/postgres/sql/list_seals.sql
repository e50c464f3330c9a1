-- list_seals: by number.
SELECT {seal}
FROM audit_seals WHERE number > $1 ORDER BY number LIMIT $2
