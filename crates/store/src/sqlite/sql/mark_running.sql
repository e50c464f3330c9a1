-- mark_running: for readers.
UPDATE live SET state = 1, dispatched_at = ?3 WHERE id = ?1 AND claim = ?2
