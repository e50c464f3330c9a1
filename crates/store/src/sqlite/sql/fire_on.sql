-- fire: the same compare-and-swap for a job that goes on: it stays active and has a next slot. What does not change is not
-- named, so that the indexes over it are not opened.
UPDATE jobs SET next_slot = ?1, due_at = ?2, slot_last = ?3, runs_made = ?4
WHERE id = ?5 AND version = ?6 AND next_slot = ?7 AND state = 0 /* JobState::Active */ AND runs_made = ?8
  AND (?9 IS NULL OR slot_last = ?9) AND manual_runs = ?10 AND (NOT ?11 OR slot_last IS NULL)
