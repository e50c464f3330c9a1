-- retain: and what only edits change of them.
DELETE FROM defs WHERE id = ANY($1::uuid[]) RETURNING tenant, gone, coalesce(octet_length(payload), 0)
