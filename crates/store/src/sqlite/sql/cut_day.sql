-- change_job, withdraw, settle: the rest of what was passed over is decided anew.
UPDATE history_{day} SET stretch_last = ?2, stretch_count = ?3 WHERE id = ?1
