-- change_job, withdraw, settle: slots that were skipped are decided again.
DELETE FROM history_{day} WHERE id = ?1
