-- park: and says why.
UPDATE defs SET updated_at = ?2, note = ?3, paused_by = NULL WHERE id = ?1
