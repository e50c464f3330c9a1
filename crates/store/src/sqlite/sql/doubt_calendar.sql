-- create_jobs, change_job: a job was scheduled by another version of this, and is to be rescheduled.
UPDATE calendars SET applied = 0, doubts = doubts + 1 WHERE tenant = ?1 AND name = ?2
