-- retain: a job that cannot be read goes with its tenant.
UPDATE jobs SET state = 4 /* JobState::Deleted */, next_slot = NULL, due_at = NULL WHERE id = ?1
