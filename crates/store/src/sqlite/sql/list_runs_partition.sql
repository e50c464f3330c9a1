-- list_runs: runs of the tenant that is always there on a day of history, newest first (one that was decided again is alive,
-- and not listed here); ?3 has a bit for every state that is wanted. Where it was the only tenant when the day was made,
-- nearly all of the day is its own.
SELECT id FROM history_{day} WHERE tenant = 0 AND tenant = ?1 AND id < ?2 AND id >= ?6 AND (?3 >> state) & 1
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = history_{day}.id)
ORDER BY id DESC LIMIT ?4
