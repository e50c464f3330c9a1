-- list_slots: what came of a job's slots on a day of history, oldest first (one that was decided again is alive,
-- and not listed here).
SELECT id FROM history_{day} WHERE job = ?1 AND id >= ?3 AND id < ?4 AND tenant = ?2 AND kind = 0 /* RunKind::Slot */
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = history_{day}.id)
ORDER BY id LIMIT ?5
