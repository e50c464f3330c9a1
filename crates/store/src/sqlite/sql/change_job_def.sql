-- change_job: the wide row, as it is now.
UPDATE defs SET key = ?2, gone = ?3, created_at = ?4, updated_at = ?5, note = ?6, doc = ?7, payload = ?8
WHERE id = ?1
