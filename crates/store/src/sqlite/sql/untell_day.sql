-- change_job, withdraw, settle: what was passed over is decided anew.
DELETE FROM history_{day} WHERE id = ?1
