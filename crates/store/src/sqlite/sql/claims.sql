-- claims: what one presence holds.
SELECT id, attempt, due_at, ask FROM live WHERE id > ?2 AND claim = ?1 ORDER BY id LIMIT ?3
