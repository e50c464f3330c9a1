-- settle: why the system paused a job.
UPDATE defs SET updated_at = ?2, note = ?3, paused_by = ?4 WHERE id = ?1
