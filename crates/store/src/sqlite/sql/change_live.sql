-- every decision: a living run goes on otherwise. Its claim (?6) and its attempts (?10) may stay as they are.
UPDATE live SET state = ?2, attempt = ?3, due_at = ?4, lost = ?5, claim = iif(?6, claim, NULL), ask = ?7, waiting = ?8,
                dispatched_at = ?9, attempts = iif(?10, ?11, attempts)
WHERE id = ?1
