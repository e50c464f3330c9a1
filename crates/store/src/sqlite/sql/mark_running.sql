-- mark_running: for readers. When it was first dispatched is kept through retries.
UPDATE live SET state = 1 /* RunState::Running */, dispatched_at = coalesce(dispatched_at, ?3) WHERE id = ?1 AND claim = ?2
