-- change_job, withdraw, fire: which slots of a job have a run that ended on a day of history. State 6 was skipped.
SELECT id FROM history_{day} WHERE job = ?1 AND id >= ?2 AND id < ?3 AND kind = 0 AND state <> 6 ORDER BY id
