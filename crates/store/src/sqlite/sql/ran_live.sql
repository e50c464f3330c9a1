-- change_job, withdraw, fire: which slots of a job have a run alive.
SELECT id FROM live WHERE job = ?1 AND id >= ?2 AND id < ?3 AND kind = 0 ORDER BY id
