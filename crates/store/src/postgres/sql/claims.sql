-- claims: what one presence holds.
SELECT id, attempt, due_at, ask FROM live
WHERE claim = (SELECT no FROM presences WHERE id = $1) AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3
