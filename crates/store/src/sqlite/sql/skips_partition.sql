-- change_job, withdraw, settle: skip records of a job from a moment on. State 6 was skipped.
SELECT id, stretch_last, stretch_count, state = 6 /* RunState::Skipped */ FROM history_{day}
WHERE job = ?1 AND id >= ?2 AND kind = 0 /* RunKind::Slot */ AND state = 6 /* RunState::Skipped */
