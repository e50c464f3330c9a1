-- park: an active job that cannot be read leaves the plan.
UPDATE jobs SET state = 3 /* JobState::Invalid */, version = version + 1, next_slot = NULL, due_at = NULL, state_at = ?2
WHERE id = ?1 AND state = 0 /* JobState::Active */
