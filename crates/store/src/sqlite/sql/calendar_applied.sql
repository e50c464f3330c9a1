-- rule_applied: every job that names the calendar was aimed by this version. create_jobs, change_job: not all of them
-- were (0).
UPDATE calendars SET applied = ?3 WHERE tenant = ?1 AND name = ?2
