-- create_jobs, change_job: a calendar as it stands, to be compared with what a job was scheduled by.
SELECT version FROM calendars WHERE tenant = ?1 AND name = ?2
