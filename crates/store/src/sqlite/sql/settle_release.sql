-- settle: anyone's again, or to wait for what ?4 says until ?5, unless the run is marked.
UPDATE live SET claim = NULL, dispatched_at = iif(attempt = 1, NULL, dispatched_at),
                waiting = iif(?4 IS NULL, 0, 2), wait_reason = ?4, wait_until = coalesce(?5, wait_until),
                state = iif(attempt = 1, 0 /* RunState::Ready */, 2 /* RunState::Retrying */)
WHERE id = ?1 AND claim = ?2 AND attempt = ?3 AND ask IS NULL
