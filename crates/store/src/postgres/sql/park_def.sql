-- park: and say why.
UPDATE defs d SET updated_at = $3, note = n.note, paused_by = NULL
FROM unnest($1::uuid[], $2::text[]) n(id, note)
WHERE d.id = n.id
