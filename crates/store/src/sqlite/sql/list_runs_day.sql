-- list_runs: runs of a day of history, newest first; ?3 has a bit for every state that is wanted.
SELECT id FROM history_{day} WHERE tenant = ?1 AND id < ?2 AND (?3 >> state) & 1 ORDER BY id DESC LIMIT ?4
