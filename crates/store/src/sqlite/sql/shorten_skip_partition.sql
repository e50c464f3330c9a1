-- change_job, withdraw, settle: the last slots of a skip record are decided again.
UPDATE history_{day} SET stretch_last = ?2, stretch_count = ?3 WHERE id = ?1
