-- park: and says why.
UPDATE defs SET updated_at = ?2, note = ?3 WHERE id = ?1
