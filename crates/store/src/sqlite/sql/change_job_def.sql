-- change_job: the wide row, as it is now. The zone stays (?12) when the schedule cannot be read any more.
UPDATE defs SET key = ?2, gone = ?3, created_at = ?4, updated_at = ?5, note = ?6, doc = ?7, payload = ?8,
                paused_by = ?9, calendars = ?10, zone = iif(?12, zone, ?11), owner = ?13, once_until = ?14
WHERE id = ?1
