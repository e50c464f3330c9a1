-- settle: back to waiting for a holder, unless the run is marked.
UPDATE live SET claim = NULL, dispatched_at = iif(attempt = 1, NULL, dispatched_at),
                state = iif(attempt = 1, 0 /* RunState::Ready */, 2 /* RunState::Retrying */)
WHERE id = ?1 AND claim = ?2 AND attempt = ?3 AND ask IS NULL
