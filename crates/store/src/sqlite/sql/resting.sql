-- open, and after a rollback: jobs whose next slot is set by the end of their run.
SELECT id FROM jobs INDEXED BY jobs_resting WHERE state = 0 /* JobState::Active */ AND next_slot IS NULL
