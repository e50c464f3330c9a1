-- change_job, withdraw, settle: the last entry about a job's slots before a moment, and whether it is a skip record.
-- State 6 was skipped.
SELECT id, stretch_last, stretch_count, state = 6 /* RunState::Skipped */ FROM history_{day}
WHERE job = ?1 AND id < ?2 AND kind = 0 /* RunKind::Slot */ ORDER BY id DESC LIMIT 1
