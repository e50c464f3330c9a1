-- list_runs: runs of any other tenant on a day of history, newest first (one that was decided again is alive, and not listed
-- here), by an index of their own; ?3 has a bit for every state that is wanted.
SELECT id FROM history_{day} INDEXED BY history_{day}_tenant
WHERE tenant = ?1 AND tenant <> 0 AND id < ?2 AND id >= ?6 AND (?3 >> state) & 1
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = history_{day}.id)
ORDER BY id DESC LIMIT ?4
