-- settle: the next attempt, unless the run is marked.
UPDATE live SET attempt = ?4, state = 2 /* RunState::Retrying */, due_at = ?5, claim = NULL,
                dispatched_at = coalesce(dispatched_at, ?8),
                lost = ?6, attempts = ?7
WHERE id = ?1 AND claim = ?2 AND attempt = ?3 AND ask IS NULL
