-- settle: the next attempt, unless someone asked for the end (asks from 16 on).
UPDATE live SET attempt = ?4, state = 2, due_at = ?5, claim = NULL, ask = NULL,
                dispatched_at = coalesce(dispatched_at, ?8), lost = ?6, attempts = ?7
WHERE id = ?1 AND claim = ?2 AND attempt = ?3 AND (ask IS NULL OR ask < 16)
