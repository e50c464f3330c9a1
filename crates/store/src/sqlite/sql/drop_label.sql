-- change_job, retain: one label goes.
DELETE FROM labels WHERE tenant = ?1 AND name = ?2 AND value = ?3 AND job = ?4
