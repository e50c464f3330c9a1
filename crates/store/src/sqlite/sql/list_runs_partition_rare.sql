-- list_runs: runs of a day of history that ended in one way other than success, newest first (one that was decided again is
-- alive, and not listed here). Read once for each such state: within one, a tenant's are in the order of ids.
SELECT id FROM history_{day} INDEXED BY history_{day}_rare
WHERE state = ?3 AND state <> 3 /* RunState::Succeeded */ AND tenant = ?1 AND id < ?2 AND id >= ?6
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = history_{day}.id)
ORDER BY id DESC LIMIT ?4
