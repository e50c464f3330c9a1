-- create_jobs, change_job, retain: so many jobs more name a calendar.
INSERT INTO calendar_uses (tenant, name, jobs) VALUES (?1, ?2, ?3)
ON CONFLICT (tenant, name) DO UPDATE SET jobs = jobs + ?3
