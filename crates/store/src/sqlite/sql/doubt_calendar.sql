-- create_jobs, change_job: a job was aimed by another version of this, and is to be aimed anew.
UPDATE calendars SET applied = 0, doubts = doubts + 1 WHERE tenant = ?1 AND name = ?2
