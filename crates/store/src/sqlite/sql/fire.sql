-- fire: the compare-and-swap. A job moves onward if it is active, at the version and the slot that plan saw, and has made
-- as many runs, manual ones among them; with ?13 none at all.
UPDATE jobs SET next_slot = ?1, due_at = ?2, slot_last = ?3, state = ?4, state_at = coalesce(?5, state_at),
                runs_made = ?6
WHERE id = ?7 AND version = ?8 AND next_slot = ?9 AND state = 0 /* JobState::Active */ AND runs_made = ?10
  AND (?11 IS NULL OR slot_last = ?11) AND manual_runs = ?12 AND (NOT ?13 OR slot_last IS NULL)
