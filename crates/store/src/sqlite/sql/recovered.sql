-- firing_alerts: the first run of a job after another that succeeded since, of one day.
SELECT id, settled_at FROM history_{day}
WHERE job = ?1 AND id > ?2 AND state = 3 /* RunState::Succeeded */ AND settled_at >= ?3 ORDER BY id LIMIT 1
