-- change_job, withdraw, fire, settle: slots of a job whose runs ended on a day of history. State 6 was skipped.
SELECT id FROM history_{day} WHERE job = ?1 AND id >= ?2 AND id < ?3 AND kind = 0 /* RunKind::Slot */
  AND state <> 6 /* RunState::Skipped */ ORDER BY id
