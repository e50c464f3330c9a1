-- change_job, and every decision: where a job stands.
UPDATE jobs SET state = ?2, version = ?3, next_slot = ?4, due_at = ?5, slot_last = ?6, state_at = ?7, runs_made = ?8,
                catch_up_to = ?9, manual_runs = ?10, failures = ?11
WHERE id = ?1
