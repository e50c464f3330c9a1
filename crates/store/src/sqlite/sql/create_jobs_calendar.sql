-- create_jobs, change_job: a job names a calendar.
INSERT OR IGNORE INTO calendar_jobs (tenant, name, job) VALUES (?1, ?2, ?3)
